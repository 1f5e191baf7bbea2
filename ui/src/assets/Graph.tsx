// The graph: cards while they can be read, dots when they cannot, lines on a canvas behind them. Drag to move, wheel to
// zoom; pointing at an asset lights up what it is made of and what is made of it.
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, type CSSProperties } from "react";
import { useLocation } from "wouter";
import { assetHref } from "../parts/format";
import { Skeleton } from "../parts/Panel";
import { useDebounced } from "../parts/useDebounced";
import { AROUND, drawGraph } from "./drawGraph";
import { GraphCard, textOf } from "./GraphCard";
import type { Card } from "./grouping";
import { NODE, type Layout } from "./layout";
import { lineageOf } from "./lineage";
import { useLayout } from "./useLayout";
import { between, fitted, isEnough, levelOf, zoomed, type View } from "./view";

/** How long a wheel rests before what it zoomed is drawn again. */
const REST_MS = 120;
const STEP = 1.3;

/** What sizes of words are worked out from: they stay readable while cards become smaller. */
const scaleStyle = ({ k }: View): CSSProperties => ({ ["--k" as string]: k });

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
  /** The view that is drawn. */
  const [view, setView] = useState<View>({ x: 0, y: 0, k: 1 });
  /** The view that is shown: what was drawn, moved and scaled until it is drawn again. */
  const wanted = useRef(view);
  const resting = useRef<ReturnType<typeof setTimeout>>(undefined);
  const [hovered, setHovered] = useState(-1);
  const [themed, setThemed] = useState(0);
  const [dragging, setDragging] = useState(false);
  const fittedTo = useRef<string>("");
  /** Whether the viewer chose the view. */
  const isChosen = useRef(false);
  const [, navigate] = useLocation();

  const draw = useCallback((next: View) => {
    clearTimeout(resting.current);
    wanted.current = next;
    setView(next);
  }, []);
  /** Shows a view by what is drawn if that is enough; whether it was. */
  const show = useCallback(
    (next: View): boolean => {
      const element = moved.current;
      if (element === null || !isEnough(view, next, size, AROUND)) {
        draw(next);
        return false;
      }
      wanted.current = next;
      const { x, y, k } = between(view, next);
      element.style.transform = `translate(${String(x)}px, ${String(y)}px) scale(${String(k)})`;
      return true;
    },
    [draw, view, size],
  );
  // A view that is drawn is where it belongs.
  useLayoutEffect(() => {
    if (moved.current !== null) moved.current.style.transform = "";
  }, [view]);
  useEffect(() => () => { clearTimeout(resting.current); }, []);

  const fit = useCallback(() => {
    const { clientWidth: width, clientHeight: height } = box.current ?? { clientWidth: 0, clientHeight: 0 };
    if (width > 0) draw(fitted(layout, { width, height }));
  }, [draw, layout]);

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
    if (size.width === 0 || (fittedTo.current === shape && isChosen.current)) return;
    if (fittedTo.current !== shape) isChosen.current = false;
    fittedTo.current = shape;
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
  useLayoutEffect(() => {
    if (canvas.current !== null) drawGraph(canvas.current, view, size, { cards, edges, layout, lineage });
  }, [view, size, cards, edges, layout, lineage, themed]);

  const step = useCallback(
    (factor: number) => {
      isChosen.current = true;
      draw(zoomed(wanted.current, factor, size.width / 2, size.height / 2));
    },
    [draw, size],
  );
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    // React's own listener is passive, and the page would scroll too.
    const onWheel = (event: WheelEvent) => {
      if (event.target instanceof HTMLElement && event.target.closest(".side") !== null) return;
      event.preventDefault();
      isChosen.current = true;
      const bounds = element.getBoundingClientRect();
      const next = zoomed(wanted.current, Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), event.clientX - bounds.left, event.clientY - bounds.top);
      if (!show(next)) return;
      clearTimeout(resting.current);
      resting.current = setTimeout(() => {
        setView(wanted.current);
      }, REST_MS);
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => {
      element.removeEventListener("wheel", onWheel);
    };
  }, [show]);

  const level = levelOf(view);
  const rested = useDebounced(view);
  /** Cards within the view and so much of it around. */
  const within = (around: number) => {
    const [left, top] = [(-view.x - size.width * around) / view.k - NODE.width, (-view.y - size.height * around) / view.k - NODE.height];
    const [right, bottom] = [(size.width * (1 + around) - view.x) / view.k, (size.height * (1 + around) - view.y) / view.k];
    return (index: number) => {
      const [x, y] = [layout.x[index] ?? 0, layout.y[index] ?? 0];
      return x > left && x < right && y > top && y < bottom;
    };
  };
  const isDrawn = within(AROUND);
  const isSeen = within(0);

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
    const { x: atX, y: atY, k } = wanted.current;
    const [x, y] = [(event.clientX - bounds.left - atX) / k, (event.clientY - bounds.top - atY) / k];
    return cards.findIndex((_, index) => x >= (layout.x[index] ?? 0) && x <= (layout.x[index] ?? 0) + NODE.width && y >= (layout.y[index] ?? 0) && y <= (layout.y[index] ?? 0) + NODE.height);
  };
  const pointed = level === "far" ? cards[hovered] : undefined;

  return (
    <div
      ref={box}
      className={`graph${dragging ? " dragging" : ""}`}
      data-testid="graph"
      data-cards={cards.length}
      data-level={level}
      onPointerDown={(event) => {
        if (event.button !== 0 || (event.target instanceof HTMLElement && event.target.closest("button, a, .side") !== null)) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        clearTimeout(resting.current);
        start.current = { x: event.clientX, y: event.clientY, view: wanted.current, moved: false };
        setDragging(true);
      }}
      onPointerMove={(event) => {
        const from = start.current;
        if (from !== undefined) {
          const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
          from.moved ||= Math.abs(dx) + Math.abs(dy) > 4;
          isChosen.current ||= from.moved;
          show({ ...from.view, x: from.view.x + dx, y: from.view.y + dy });
        } else if (level === "far") setHovered(pointAt(event));
      }}
      onPointerLeave={() => {
        if (level === "far") setHovered(-1);
      }}
      onPointerUp={(event) => {
        const from = start.current;
        start.current = undefined;
        setDragging(false);
        if (from === undefined) return;
        draw(wanted.current);
        if (from.moved) return;
        const card = level === "far" ? cards[pointAt(event)] : undefined;
        if (card === undefined) onSelect("");
        else select(card);
      }}
    >
      <div ref={moved} className="moved">
        <canvas ref={canvas} aria-hidden="true" />
        <div className={`nodes ${level}`} style={{ transform: `translate(${String(view.x)}px, ${String(view.y)}px) scale(${String(view.k)})`, ...scaleStyle(view) }}>
          {level === "far"
            ? null
            : cards.map((card, index) =>
                isDrawn(index) ? (
                  <GraphCard
                    key={card.id}
                    card={card}
                    index={index}
                    x={layout.x[index] ?? 0}
                    y={layout.y[index] ?? 0}
                    isNear={level === "near"}
                    isSeen={level === "near" && rested === view && isSeen(index)}
                    isSelected={card.id === selected}
                    isDim={lineage !== undefined && !lineage.has(index)}
                    onHover={setHovered}
                    onSelect={select}
                    onOpen={open}
                  />
                ) : null,
              )}
        </div>
      </div>
      {pointed === undefined ? null : <div className="graph-hint">{textOf(pointed)}</div>}
      <div className="graph-tools">
        <button
          type="button"
          className="button small"
          aria-label="Zoom in"
          onClick={() => {
            step(STEP);
          }}
        >
          +
        </button>
        <button
          type="button"
          className="button small"
          aria-label="Zoom out"
          onClick={() => {
            step(1 / STEP);
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
