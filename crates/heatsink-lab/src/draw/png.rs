//! PNG from SVG, with the machine's fonts.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use crate::exit::Exit;

/// Pixels of a PNG for each of the picture's: sharp on screens of today.
const SCALE: u16 = 2;

/// The PNG file's bytes.
pub fn draw(svg: &str) -> Result<Vec<u8>, Exit> {
    let mut options = Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_system_fonts();
    if fonts.is_empty() {
        return Err(Exit::unavailable(
            "there are no fonts on this machine to draw a PNG with; write an .svg instead",
        ));
    }
    let failed = |what: String| Exit::software(format!("the picture could not be drawn: {what}"));
    let tree = Tree::from_str(svg, &options).map_err(|error| failed(error.to_string()))?;
    let size =
        tree.size().to_int_size().scale_by(f32::from(SCALE)).ok_or_else(|| failed("its size".to_owned()))?;
    let mut pixels = Pixmap::new(size.width(), size.height()).ok_or_else(|| failed("its size".to_owned()))?;
    resvg::render(&tree, Transform::from_scale(f32::from(SCALE), f32::from(SCALE)), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| failed(error.to_string()))
}
