// The graph: cards while they can be read, dots when they cannot, lines on a canvas behind them. Drag to move, wheel to
// zoom; pointing at an asset lights up what it is made of and what is made of it.
import { memo, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useLocation } from "wouter";
import { assetHref, count, dotted, plural } from "../parts/format";
import { Mark, type Tone } from "../parts/State";
import { Ago } from "../parts/Time";
import { Skeleton } from "../parts/Panel";
import { WORST, type Card } from "./grouping";
import { NODE, type Layout } from "./layout";
import { useLayout } from "./useLayout";

interface View {
  x: number;
  y: number;
  k: number;
}

const READABLE = 0.42;
/** How far around the view is drawn, as a part of it: so far it can be dragged without drawing again. */
const AROUND = 0.4;
const [LEAST, MOST] = [0.02, 1.6];

interface Props {
  cards: Card[];
  edges: [number, number][];
  selected: string;
  onSelect: (id: string) => void;
  onOpen: (group: string) => void;
}

export function Graph({ cards, edges, selected, onSelect, onOpen }: Props) {
  const names = useMemo(() => cards.map((card) => card.id), [cards]);
  const layout = useLayout(names, edges);
  if (layout === undefined)
    return (
      <div className="graph">
        <Skeleton rows={6} />
      </div>
    );
  return <Drawn cards={cards} edges={edges} selected={selected} onSelect={onSelect} onOpen={onOpen} layout={layout} />;
}

function Drawn({ cards, edges, selected, onSelect, onOpen, layout }: Props & { layout: Layout }) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const moved = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [view, setView] = useState<View>({ x: 0, y: 0, k: 1 });
  const [hovered, setHovered] = useState(-1);
  const [themed, setThemed] = useState(0);
  const [dragging, setDragging] = useState(false);
  const fitted = useRef<string>("");
  /** Whether the viewer chose the view. */
  const isChosen = useRef(false);
  const [, navigate] = useLocation();

  const fit = useCallback(() => {
    const { clientWidth: width, clientHeight: height } = box.current ?? { clientWidth: 0, clientHeight: 0 };
    if (width === 0) return;
    const k = Math.min(1, Math.max(LEAST, Math.min((width - 64) / Math.max(layout.width, 1), (height - 64) / Math.max(layout.height, 1))));
    setView({ k, x: (width - layout.width * k) / 2, y: (height - layout.height * k) / 2 });
  }, [layout]);

  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => {
      setSize({ width: element.clientWidth, height: element.clientHeight });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
    };
  }, []);
  useEffect(() => {
    // The same assets keep their view, however their states change.
    const shape = `${String(layout.width)} ${String(layout.height)} ${String(cards.length)}`;
    if (size.width === 0 || (fitted.current === shape && isChosen.current)) return;
    if (fitted.current !== shape) isChosen.current = false;
    fitted.current = shape;
    fit();
  }, [fit, size, layout, cards.length]);
  useEffect(() => {
    const on = () => {
      setThemed((value) => value + 1);
    };
    window.addEventListener("servo-theme", on);
    return () => {
      window.removeEventListener("servo-theme", on);
    };
  }, []);

  const lineage = useMemo(() => (hovered < 0 ? undefined : lineageOf(hovered, edges)), [hovered, edges]);

  // A view that is drawn is where it belongs.
  useLayoutEffect(() => {
    if (moved.current !== null) moved.current.style.transform = "";
  }, [view]);

  useLayoutEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (element === null || context == null || size.width === 0) return;
    const ratio = window.devicePixelRatio;
    const [aroundX, aroundY] = [size.width * AROUND, size.height * AROUND];
    element.width = (size.width + 2 * aroundX) * ratio;
    element.height = (size.height + 2 * aroundY) * ratio;
    element.style.width = `${String(size.width + 2 * aroundX)}px`;
    element.style.height = `${String(size.height + 2 * aroundY)}px`;
    element.style.transform = `translate(${String(-aroundX)}px, ${String(-aroundY)}px)`;
    const style = getComputedStyle(element);
    const colour = (name: string) => style.getPropertyValue(`--${name}`);
    context.setTransform(ratio * view.k, 0, 0, ratio * view.k, ratio * (view.x + aroundX), ratio * (view.y + aroundY));
    const [left, top] = [(-view.x - aroundX) / view.k, (-view.y - aroundY) / view.k];
    const [right, bottom] = [left + (size.width + 2 * aroundX) / view.k, top + (size.height + 2 * aroundY) / view.k];
    const line = (lit: boolean) => {
      context.beginPath();
      for (const [from, to] of edges) {
        const isLit = lineage !== undefined && lineage.has(from) && lineage.has(to);
        if (isLit !== lit) continue;
        const [x1, y1] = [(layout.x[from] ?? 0) + NODE.width, (layout.y[from] ?? 0) + NODE.height / 2];
        const [x2, y2] = [layout.x[to] ?? 0, (layout.y[to] ?? 0) + NODE.height / 2];
        if (Math.max(x1, x2) < left || Math.min(x1, x2) > right || Math.max(y1, y2) < top || Math.min(y1, y2) > bottom) continue;
        const bend = Math.max(30, (x2 - x1) / 2);
        context.moveTo(x1, y1);
        context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
      }
      context.strokeStyle = colour(lit ? "accent" : "border-strong");
      context.lineWidth = (lit ? 1.8 : 1.1) / Math.max(view.k, 0.35);
      context.globalAlpha = !lit && lineage !== undefined ? 0.35 : 1;
      context.stroke();
      context.globalAlpha = 1;
    };
    line(false);
    if (lineage !== undefined) line(true);
    if (view.k < READABLE)
      cards.forEach((card, index) => {
        const [x, y] = [layout.x[index] ?? 0, layout.y[index] ?? 0];
        if (x > right || x + NODE.width < left || y > bottom || y + NODE.height < top) return;
        context.fillStyle = colour(card.tone);
        context.globalAlpha = lineage === undefined || lineage.has(index) ? 1 : 0.3;
        context.beginPath();
        context.roundRect(x + 50, y + 4, NODE.width - 100, NODE.height - 8, 16);
        context.fill();
        context.globalAlpha = 1;
      });
  }, [view, size, cards, edges, layout, lineage, themed]);

  const zoom = useCallback((factor: number, x: number, y: number) => {
    isChosen.current = true;
    setView((before) => {
      const k = Math.min(MOST, Math.max(LEAST, before.k * factor));
      return { k, x: x - ((x - before.x) * k) / before.k, y: y - ((y - before.y) * k) / before.k };
    });
  }, []);

  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    // React's own listener is passive, and the page would scroll too.
    const onWheel = (event: WheelEvent) => {
      if (event.target instanceof HTMLElement && event.target.closest(".side") !== null) return;
      event.preventDefault();
      const bounds = element.getBoundingClientRect();
      zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), event.clientX - bounds.left, event.clientY - bounds.top);
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => {
      element.removeEventListener("wheel", onWheel);
    };
  }, [zoom]);

  const isReadable = view.k >= READABLE;
  const [left, top] = [(-view.x - size.width * AROUND) / view.k - NODE.width, (-view.y - size.height * AROUND) / view.k - NODE.height];
  const [right, bottom] = [(size.width * (1 + AROUND) - view.x) / view.k, (size.height * (1 + AROUND) - view.y) / view.k];
  const seen: number[] = [];
  if (isReadable)
    for (let index = 0; index < cards.length; index++) {
      const [x, y] = [layout.x[index] ?? 0, layout.y[index] ?? 0];
      if (x > left && x < right && y > top && y < bottom) seen.push(index);
    }

  const select = useCallback(
    (card: Card) => {
      if (card.members === undefined) onSelect(card.id);
      else onOpen(card.group);
    },
    [onSelect, onOpen],
  );
  const open = useCallback(
    (card: Card) => {
      if (card.members === undefined) navigate(assetHref(card.id));
    },
    [navigate],
  );

  const start = useRef<{ x: number; y: number; view: View; moved: boolean } | undefined>(undefined);
  const pointAt = (event: { clientX: number; clientY: number }): number => {
    const bounds = box.current?.getBoundingClientRect();
    if (bounds === undefined) return -1;
    const [x, y] = [(event.clientX - bounds.left - view.x) / view.k, (event.clientY - bounds.top - view.y) / view.k];
    return cards.findIndex((_, index) => x >= (layout.x[index] ?? 0) && x <= (layout.x[index] ?? 0) + NODE.width && y >= (layout.y[index] ?? 0) && y <= (layout.y[index] ?? 0) + NODE.height);
  };

  return (
    <div
      ref={box}
      className={`graph${dragging ? " dragging" : ""}`}
      data-testid="graph"
      data-cards={cards.length}
      onPointerDown={(event) => {
        if (event.button !== 0 || (event.target instanceof HTMLElement && event.target.closest("button, a, .side") !== null)) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        start.current = { x: event.clientX, y: event.clientY, view, moved: false };
        setDragging(true);
      }}
      onPointerMove={(event) => {
        const from = start.current;
        if (from !== undefined) {
          const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
          from.moved ||= Math.abs(dx) + Math.abs(dy) > 4;
          isChosen.current ||= from.moved;
          // What is drawn is moved; it is drawn again when the drag ends, or leaves what was drawn.
          if (Math.abs(dx) < size.width * AROUND * 0.9 && Math.abs(dy) < size.height * AROUND * 0.9) {
            if (moved.current !== null) moved.current.style.transform = `translate(${String(dx)}px, ${String(dy)}px)`;
            return;
          }
          start.current = { ...from, x: event.clientX, y: event.clientY, view: { ...from.view, x: from.view.x + dx, y: from.view.y + dy } };
          setView(start.current.view);
        } else if (!isReadable) setHovered(pointAt(event));
      }}
      onPointerUp={(event) => {
        const from = start.current;
        start.current = undefined;
        setDragging(false);
        if (from === undefined) return;
        if (from.moved) {
          setView({ ...from.view, x: from.view.x + event.clientX - from.x, y: from.view.y + event.clientY - from.y });
          return;
        }
        const card = isReadable ? undefined : cards[pointAt(event)];
        if (card === undefined) onSelect("");
        else select(card);
      }}
    >
      <div ref={moved} className="moved">
      <canvas ref={canvas} aria-hidden="true" />
      <div className="nodes" style={{ transform: `translate(${String(view.x)}px, ${String(view.y)}px) scale(${String(view.k)})` }}>
        {seen.map((index) => {
          const card = cards[index];
          return card === undefined ? null : (
            <Node key={card.id} card={card} index={index} x={layout.x[index] ?? 0} y={layout.y[index] ?? 0} isSelected={card.id === selected} isDim={lineage !== undefined && !lineage.has(index)} onHover={setHovered} onSelect={select} onOpen={open} />
          );
        })}
      </div>
      </div>
      <div className="graph-tools">
        <button
          type="button"
          className="button small"
          aria-label="Zoom in"
          onClick={() => {
            zoom(1.3, size.width / 2, size.height / 2);
          }}
        >
          +
        </button>
        <button
          type="button"
          className="button small"
          aria-label="Zoom out"
          onClick={() => {
            zoom(1 / 1.3, size.width / 2, size.height / 2);
          }}
        >
          −
        </button>
        <button
          type="button"
          className="button small"
          onClick={() => {
            isChosen.current = false;
            fit();
          }}
        >
          Fit
        </button>
      </div>
    </div>
  );
}

interface NodeProps {
  card: Card;
  index: number;
  x: number;
  y: number;
  isSelected: boolean;
  isDim: boolean;
  onHover: (index: number) => void;
  onSelect: (card: Card) => void;
  onOpen: (card: Card) => void;
}

const Node = memo(function Node({ card, index, x, y, isSelected, isDim, onHover, onSelect, onOpen }: NodeProps) {
  const { node, members } = card;
  const name = node === undefined ? card.group : dotted(node.asset_key);
  return (
    <button
      type="button"
      className={`node is-${card.tone}${isDim ? " dim" : ""}${node?.external === true ? " external" : ""}`}
      style={{ left: x, top: y }}
      aria-pressed={isSelected}
      title={`${name}: ${card.tones === undefined ? card.why : rollUp(card.tones)}`}
      onMouseEnter={() => {
        onHover(index);
      }}
      onMouseLeave={() => {
        onHover(-1);
      }}
      onFocus={() => {
        onHover(index);
      }}
      onBlur={() => {
        onHover(-1);
      }}
      onClick={() => {
        onSelect(card);
      }}
      onDoubleClick={() => {
        onOpen(card);
      }}
    >
      <span className="name ellipsis">{name}</span>
      <span className="sub">
        <Mark tone={card.tone} />
        <span className="ellipsis">
          {members === undefined ? card.word : `${plural(members.length, "asset")} · ${card.word}`}
          {node?.partitioned === true && node.partitions.total > 1 ? ` · ${count(node.partitions.materialized)}/${count(node.partitions.total)}` : null}
          {node?.last_success_at == null || card.tone === "running" ? null : (
            <>
              {" · "}
              <Ago at={node.last_success_at} />
            </>
          )}
        </span>
      </span>
      {card.tones === undefined || members === undefined ? null : (
        <span className="bar rollup" role="img" aria-label={rollUp(card.tones)}>
          {WORST.map((tone) => (card.tones?.has(tone) === true ? <i key={tone} style={{ width: `${String(((card.tones.get(tone) ?? 0) / members.length) * 100)}%`, background: `var(--${tone})` }} /> : null))}
        </span>
      )}
    </button>
  );
});

/** "3 failed, 97 succeeded". */
const rollUp = (tones: ReadonlyMap<Tone, number>) => WORST.flatMap((tone) => (tones.has(tone) ? [`${count(tones.get(tone) ?? 0)} ${tone}`] : [])).join(", ");

/** Everything that a card is made of, and everything that is made of it. */
export function lineageOf(start: number, edges: readonly (readonly [number, number])[]): Set<number> {
  const found = new Set([start]);
  for (const [near, far] of [
    [1, 0],
    [0, 1],
  ] as const) {
    const next = new Map<number, number[]>();
    for (const edge of edges) {
      const list = next.get(edge[near]) ?? [];
      list.push(edge[far]);
      next.set(edge[near], list);
    }
    const way = new Set([start]);
    const queue = [start];
    for (let node = queue.pop(); node !== undefined; node = queue.pop())
      for (const other of next.get(node) ?? [])
        if (!way.has(other)) {
          way.add(other);
          found.add(other);
          queue.push(other);
        }
  }
  return found;
}
