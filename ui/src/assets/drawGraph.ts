// What of a graph is drawn on the canvas: lines, and from afar a dot for every card.
import type { Card } from "./grouping";
import { NODE, type Layout } from "./layout";
import { levelOf, type Size, type View } from "./view";

/** How far around the view is drawn, as a part of it: so far it can be moved without drawing again. */
export const AROUND = 0.4;
/** Radii of dots: those of a graph that is far away can still be seen, and do not touch. */
const [DOT, MOST_DOT, SEEN] = [22, 34, 2.5];

interface Drawing {
  cards: readonly Card[];
  edges: readonly (readonly [number, number])[];
  layout: Layout;
  /** Cards that are lit, if some are. */
  lineage: ReadonlySet<number> | undefined;
}

export function drawGraph(canvas: HTMLCanvasElement, view: View, size: Size, { cards, edges, layout, lineage }: Drawing): void {
  const context = canvas.getContext("2d");
  if (context === null || size.width === 0) return;
  const ratio = window.devicePixelRatio;
  const [aroundX, aroundY] = [size.width * AROUND, size.height * AROUND];
  const [width, height] = [size.width + 2 * aroundX, size.height + 2 * aroundY];
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.width = `${String(width)}px`;
  canvas.style.height = `${String(height)}px`;
  canvas.style.transform = `translate(${String(-aroundX)}px, ${String(-aroundY)}px)`;
  const style = getComputedStyle(canvas);
  const colour = (name: string) => style.getPropertyValue(`--${name}`);
  context.setTransform(ratio * view.k, 0, 0, ratio * view.k, ratio * (view.x + aroundX), ratio * (view.y + aroundY));
  const [left, top] = [(-view.x - aroundX) / view.k, (-view.y - aroundY) / view.k];
  const [right, bottom] = [left + width / view.k, top + height / view.k];
  const isFar = levelOf(view) === "far";
  // Lines end at the sides of cards, or at dots in the middle of where they would be.
  const dot = Math.min(MOST_DOT, Math.max(DOT, SEEN / view.k));
  const inset = isFar ? NODE.width / 2 - dot : 0;
  const line = (isLit: boolean) => {
    context.beginPath();
    for (const [from, to] of edges) {
      if ((lineage !== undefined && lineage.has(from) && lineage.has(to)) !== isLit) continue;
      const [x1, y1] = [(layout.x[from] ?? 0) + NODE.width - inset, (layout.y[from] ?? 0) + NODE.height / 2];
      const [x2, y2] = [(layout.x[to] ?? 0) + inset, (layout.y[to] ?? 0) + NODE.height / 2];
      if (Math.max(x1, x2) < left || Math.min(x1, x2) > right || Math.max(y1, y2) < top || Math.min(y1, y2) > bottom) continue;
      const bend = Math.max(30, (x2 - x1) / 2);
      context.moveTo(x1, y1);
      context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
    }
    context.strokeStyle = colour(isLit ? "accent" : "border-strong");
    context.lineWidth = (isLit ? 1.8 : 1.1) / Math.max(view.k, 0.35);
    context.globalAlpha = !isLit && lineage !== undefined ? 0.35 : 1;
    context.stroke();
    context.globalAlpha = 1;
  };
  line(false);
  if (lineage !== undefined) line(true);
  if (!isFar) return;
  // One path for each colour: a dot by itself costs as much as all of them.
  const paths = new Map<string, Path2D>();
  cards.forEach((card, index) => {
    const [x, y] = [(layout.x[index] ?? 0) + NODE.width / 2, (layout.y[index] ?? 0) + NODE.height / 2];
    if (x + dot < left || x - dot > right || y + dot < top || y - dot > bottom) return;
    const name = `${card.tone}${lineage === undefined || lineage.has(index) ? "" : " dim"}`;
    const path = paths.get(name) ?? new Path2D();
    paths.set(name, path);
    path.moveTo(x + dot, y);
    path.arc(x, y, dot, 0, 2 * Math.PI);
  });
  for (const [name, path] of paths) {
    const [tone = "", dim] = name.split(" ");
    context.fillStyle = colour(tone);
    context.globalAlpha = dim === undefined ? 1 : 0.3;
    context.fill(path);
  }
  context.globalAlpha = 1;
}
