// Where the viewer of a graph stands: a point of the graph is at `x` + its own times `k` on the screen.

export interface View {
  x: number;
  y: number;
  k: number;
}

export interface Size {
  width: number;
  height: number;
}

/** What cards say: nothing but their colour; name and state; what was made last, its checks and its owner, too. */
export type Level = "far" | "middle" | "near";

const [MIDDLE, NEAR] = [0.45, 1.35];
const [LEAST, MOST] = [0.02, 2];
/** Around what is fitted. */
const MARGIN = 32;
/** Sizes between which a drawn picture is scaled instead of drawn again. */
const [SHRUNK, GROWN] = [0.6, 1.6];

export const levelOf = ({ k }: View): Level => (k < MIDDLE ? "far" : k < NEAR ? "middle" : "near");

/** Nearer or further by a factor, around a point of the screen. */
export function zoomed(view: View, factor: number, x: number, y: number): View {
  const k = Math.min(MOST, Math.max(LEAST, view.k * factor));
  return { k, x: x - ((x - view.x) * k) / view.k, y: y - ((y - view.y) * k) / view.k };
}

/** All of something, in the middle. */
export function fitted(all: Size, into: Size): View {
  const k = Math.min(1, Math.max(LEAST, Math.min((into.width - 2 * MARGIN) / Math.max(all.width, 1), (into.height - 2 * MARGIN) / Math.max(all.height, 1))));
  return { k, x: (into.width - all.width * k) / 2, y: (into.height - all.height * k) / 2 };
}

/** How what was drawn for one view is moved and scaled to be that of another. */
export const between = (drawn: View, wanted: View): View => {
  const k = wanted.k / drawn.k;
  return { k, x: wanted.x - drawn.x * k, y: wanted.y - drawn.y * k };
};

/** Whether what was drawn, with so much of the size around it, can be shown for another view. */
export function isEnough(drawn: View, wanted: View, size: Size, around: number): boolean {
  const { x, y, k } = between(drawn, wanted);
  if (k < SHRUNK || k > GROWN || levelOf(drawn) !== levelOf(wanted)) return false;
  const covers = (from: number, length: number) => from - around * length * k <= 0 && from + (1 + around) * length * k >= length;
  return covers(x, size.width) && covers(y, size.height);
}
