// The same for `import`.
import heatsink from "./index.cjs";

export const { local, NotStarted, find } = heatsink;
