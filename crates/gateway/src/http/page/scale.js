// The colour of a load: matplotlib's "inferno" on a dark plate, in eleven stops. Its lightness only rises, so it reads without colour too.
// `heatsink heatmap` draws with the same stops.
const STOPS = ["#000004", "#160b39", "#420a68", "#6a176e", "#932667", "#bc3754", "#dd513a", "#f37819", "#fca50a", "#f6d746", "#fcffa4"]
  .map((hex) => [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)));

/** Loads below this part of the scale are lifted to it: something is not nothing. */
const FAINTEST = 0.08;

/** Red, green and blue at a place of the scale, 0 to 1. */
function colour(place) {
  const at = Math.min(Math.max(place, 0), 1) * (STOPS.length - 1);
  const low = Math.min(Math.floor(at), STOPS.length - 2);
  return STOPS[low].map((from, i) => Math.round(from + (STOPS[low + 1][i] - from) * (at - low)));
}

/** The place of a load that is this share of what one partition gives. `brightness` doubles the light at each step. */
function place(share, brightness) {
  if (!(share > 0)) return 0;
  return Math.min(1, FAINTEST + (1 - FAINTEST) * share * 2 ** brightness);
}

/** 256 colours of the scale as 32-bit pixels, for canvases. */
const PIXELS = Uint32Array.from({ length: 256 }, (_, i) => {
  const [red, green, blue] = colour(i / 255);
  return (255 << 24) | (blue << 16) | (green << 8) | red;
});
const pixelOf = (share, brightness) => PIXELS[Math.round(place(share, brightness) * 255)];

/** A colour for style sheets, and black or white, whichever reads better on it. */
function tileColours(share) {
  const [red, green, blue] = colour(place(share, 0));
  const light = 0.299 * red + 0.587 * green + 0.114 * blue;
  return { background: `rgb(${red} ${green} ${blue})`, color: light > 110 ? "#000" : "#fff" };
}
