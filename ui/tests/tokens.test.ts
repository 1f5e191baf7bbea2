// Colours of states can be read in both themes, and told apart by people who see no difference between red and green.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

type Colour = [number, number, number];

const css = readFileSync(new URL("../src/theme/tokens.css", import.meta.url), "utf8");
const STATES = ["succeeded", "running", "queued", "retry", "failed", "skipped", "stale", "blocked"];

function theme(name: "light" | "dark"): Map<string, Colour> {
  const block = new RegExp(`data-theme="${name}"\\] \\{([^}]*)\\}`).exec(css)?.[1] ?? "";
  const colours = [...block.matchAll(/--([\w-]+): #([0-9a-f]{6});/g)];
  return new Map(colours.map(([, key, hex]) => [key ?? "", [0, 2, 4].map((at) => parseInt((hex ?? "").slice(at, at + 2), 16)) as Colour]));
}

const linear = (value: number) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);

function luminance([red, green, blue]: Colour): number {
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

function contrast(a: Colour, b: Colour): number {
  const [high, low] = [Math.max(luminance(a), luminance(b)), Math.min(luminance(a), luminance(b))];
  return (high + 0.05) / (low + 0.05);
}

/** A colour as deuteranopes see it (Viénot, Brettel and Mollon 1999). */
function deuteranope([red, green, blue]: Colour): Colour {
  const [r, g, b] = [linear(red), linear(green), linear(blue)];
  const seen = 0.29275 * r + 0.70725 * g;
  const back = (value: number) => Math.round(255 * (value <= 0.0031308 ? value * 12.92 : 1.055 * Math.max(value, 0) ** (1 / 2.4) - 0.055));
  return [back(seen), back(seen), back(-0.02234 * r + 0.02234 * g + b)];
}

const colour = (colours: Map<string, Colour>, name: string): Colour => {
  const found = colours.get(name);
  if (found === undefined) throw new Error(`there is no colour ${name}`);
  return found;
};

for (const name of ["light", "dark"] as const) {
  test(`texts and states of the ${name} theme have a contrast of 4.5 to 1 on every background`, () => {
    const colours = theme(name);
    for (const text of [...STATES, "text", "muted", "accent"])
      for (const background of ["background", "panel", "hover"])
        expect(contrast(colour(colours, text), colour(colours, background)), `${text} on ${background}`).toBeGreaterThanOrEqual(4.5);
    expect(contrast(colour(colours, "accent-text"), colour(colours, "accent"))).toBeGreaterThanOrEqual(4.5);
  });

  test(`fills of the ${name} theme that stand beside each other differ without red and green`, () => {
    const colours = theme(name);
    const fills = ["succeeded-fill", "failed-fill", "missing-fill"].map((fill) => deuteranope(colour(colours, fill)));
    for (const [index, one] of fills.entries())
      for (const other of fills.slice(index + 1)) expect(Math.hypot(...one.map((value, at) => value - (other[at] ?? 0)))).toBeGreaterThan(24);
  });
}
