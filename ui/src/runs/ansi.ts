// Lines as terminals would show them: escapes are gone, and colours are those of the theme, which can be read on it.
const ESCAPES = /\u001b\[[0-9;?:]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[@-Z\\-_]/g;
const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;

/** A line without the escapes of terminals. */
export const plain = (text: string) => (text.includes("\u001b") ? text.replace(ESCAPES, "") : text);

export interface Span {
  text: string;
  /** Names of classes, empty if it looks as the rest. */
  style: string;
}

/** The nearest of the eight colours. */
function nearest(red: number, green: number, blue: number): number {
  const most = Math.max(red, green, blue);
  const least = Math.min(red, green, blue);
  if (most - least < 40) return most < 90 ? 0 : 7;
  const middle = (most + least) / 2;
  return (red > middle ? 1 : 0) + (green > middle ? 2 : 0) + (blue > middle ? 4 : 0);
}

/** One of the 256 colours of terminals, as one of eight; bright ones are as the others. */
function ofPalette(number: number): number {
  if (number < 16) return number % 8;
  if (number >= 232) return nearest((number - 232) * 10 + 8, (number - 232) * 10 + 8, (number - 232) * 10 + 8);
  const at = number - 16;
  const level = (part: number) => (part === 0 ? 0 : 55 + part * 40);
  return nearest(level(Math.floor(at / 36)), level(Math.floor(at / 6) % 6), level(at % 6));
}

interface Look {
  colour: number | undefined;
  isBold: boolean;
  isDim: boolean;
  isItalic: boolean;
  isUnderlined: boolean;
}

const NONE: Look = { colour: undefined, isBold: false, isDim: false, isItalic: false, isUnderlined: false };

function changed(look: Look, codes: readonly number[]): Look {
  const next = { ...look };
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at] ?? 0;
    if (code === 0) Object.assign(next, NONE);
    else if (code === 1) next.isBold = true;
    else if (code === 2) next.isDim = true;
    else if (code === 3) next.isItalic = true;
    else if (code === 4) next.isUnderlined = true;
    else if (code === 22) next.isBold = next.isDim = false;
    else if (code === 23) next.isItalic = false;
    else if (code === 24) next.isUnderlined = false;
    else if (code >= 30 && code <= 37) next.colour = code - 30;
    else if (code === 90) next.isDim = true;
    else if (code > 90 && code <= 97) next.colour = code - 90;
    else if (code === 39) next.colour = undefined;
    else if (code === 38 || code === 48) {
      // Backgrounds are left out: no text of the theme is meant for them.
      const kind = codes[at + 1];
      const colour = kind === 5 ? ofPalette(codes[at + 2] ?? 0) : kind === 2 ? nearest(codes[at + 2] ?? 0, codes[at + 3] ?? 0, codes[at + 4] ?? 0) : undefined;
      if (code === 38 && colour !== undefined) next.colour = colour;
      at += kind === 5 ? 2 : kind === 2 ? 4 : 0;
    }
  }
  return next;
}

function styleOf({ colour, isBold, isDim, isItalic, isUnderlined }: Look): string {
  // Black and white are the colour of text: one of them could not be read.
  const name = colour === undefined || colour === 0 || colour === 7 ? undefined : COLOURS[colour];
  return [name === undefined ? "" : `ansi-${name}`, isBold ? "ansi-bold" : "", isDim ? "ansi-dim" : "", isItalic ? "ansi-italic" : "", isUnderlined ? "ansi-underline" : ""].filter(Boolean).join(" ");
}

/** The parts of a line that look differently. */
export function spansOf(text: string): Span[] {
  if (!text.includes("\u001b")) return [{ text, style: "" }];
  const spans: Span[] = [];
  let look = NONE;
  let at = 0;
  const say = (part: string) => {
    if (part === "") return;
    const style = styleOf(look);
    const last = spans.at(-1);
    if (last?.style === style) last.text += part;
    else spans.push({ text: part, style });
  };
  for (const match of text.matchAll(ESCAPES)) {
    say(text.slice(at, match.index));
    at = match.index + match[0].length;
    const codes = /^\u001b\[([0-9;:]*)m$/.exec(match[0])?.[1];
    if (codes !== undefined) look = changed(look, codes.split(/[;:]/).map(Number));
  }
  say(text.slice(at));
  return spans;
}
