// Where moments of a run are drawn, as a share of the width.
import type { Run } from "./useRun";

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 144e5, 432e5, 864e5];
/** The shortest part of a run that is looked at, in milliseconds. */
const LEAST_SPAN = 20;
const MOST_MARKS = 8;

export interface Scale {
  /** Milliseconds since the start of the run of what is at the left, and how many there are to the right. */
  offset: number;
  span: number;
  left: (at: number) => string;
  width: (from: number, to: number) => string;
  isSeen: (from: number, to: number) => boolean;
  /** Offsets with a line of their own. */
  marks: readonly number[];
}

/** `part` is what is looked at: two shares of the whole run with a dash between them, or nothing for all of it. */
export function scaleOf(run: Run, now: number, part = ""): Scale {
  const begin = Date.parse(run.started_at ?? run.created_at);
  const length = Math.max(run.finished_at == null ? now - begin : Date.parse(run.finished_at) - begin, LEAST_SPAN);
  const [a, b] = partOf(part);
  const offset = length * a;
  const span = Math.max(length * (b - a), LEAST_SPAN);
  const [from, until] = [begin + offset, begin + offset + span];
  const step = STEPS.find((each) => span / each <= MOST_MARKS) ?? span / MOST_MARKS;
  const first = Math.ceil(offset / step) * step;
  const marks = Array.from({ length: Math.floor((offset + span - first) / step) + 1 }, (_, index) => first + index * step).filter((at) => (at - offset) / span < 0.96);
  return {
    offset,
    span,
    left: (at) => `${String(Math.max(0, Math.min(100, ((at - from) / span) * 100)))}%`,
    width: (start, end) => `${String(Math.max(0, ((Math.min(end, until) - Math.max(start, from)) / span) * 100))}%`,
    isSeen: (start, end) => end >= from && start <= until,
    marks,
  };
}

/** The two shares that a text means; everything if it means none. */
export function partOf(text: string): [number, number] {
  const [a, b] = text.split("-").map(Number);
  return a !== undefined && b !== undefined && a >= 0 && b <= 1 && b > a ? [a, b] : [0, 1];
}

/** The text of a part of a part: shares of what is shown now. */
export function within(part: string, from: number, to: number): string {
  const [a, b] = partOf(part);
  const [low, high] = [Math.max(0, Math.min(from, to)), Math.min(1, Math.max(from, to))];
  return high - low < 0.005 ? part : `${(a + low * (b - a)).toFixed(5)}-${(a + high * (b - a)).toFixed(5)}`;
}
