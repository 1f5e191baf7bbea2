// Where the viewer of a graph stands, and what cards say there.
import { describe, expect, test } from "vitest";
import { lineageOf } from "../src/assets/lineage";
import { between, fitted, isEnough, levelOf, zoomed } from "../src/assets/view";

const SIZE = { width: 1000, height: 600 };

describe("the view of a graph", () => {
  test("what is zoomed around a point keeps that point", () => {
    const before = { x: 40, y: -20, k: 0.8 };
    const after = zoomed(before, 1.5, 300, 200);
    const at = (view: typeof before) => [(300 - view.x) / view.k, (200 - view.y) / view.k];
    expect(at(after)[0]).toBeCloseTo(at(before)[0] ?? 0);
    expect(at(after)[1]).toBeCloseTo(at(before)[1] ?? 0);
    expect(zoomed(before, 1000, 0, 0).k).toBeLessThan(3);
  });

  test("everything is fitted, in the middle, and never enlarged", () => {
    expect(fitted({ width: 500, height: 100 }, SIZE)).toEqual({ k: 1, x: 250, y: 250 });
    const all = fitted({ width: 20_000, height: 100 }, SIZE);
    expect(all.k * 20_000).toBeCloseTo(1000 - 2 * 32);
    expect(levelOf(all)).toBe("far");
  });

  test("cards say more the nearer they are", () => {
    expect([0.1, 0.5, 1, 1.3, 1.7].map((k) => levelOf({ x: 0, y: 0, k }))).toEqual(["far", "middle", "middle", "middle", "near"]);
  });

  test("what was drawn is moved and scaled as long as it covers what is seen at the same level", () => {
    const drawn = { x: 100, y: 50, k: 0.6 };
    const moved = { ...drawn, x: 300, y: 0 };
    expect(between(drawn, moved)).toEqual({ k: 1, x: 200, y: -50 });
    expect(isEnough(drawn, moved, SIZE, 0.4)).toBe(true);
    expect(isEnough(drawn, { ...drawn, x: 600 }, SIZE, 0.4)).toBe(false);
    expect(isEnough(drawn, zoomed(drawn, 1.2, 500, 300), SIZE, 0.4)).toBe(true);
    expect(isEnough(drawn, zoomed(drawn, 0.5, 500, 300), SIZE, 0.4)).toBe(false);
    // Scaled, words of one level would stand where those of another belong.
    expect(isEnough({ ...drawn, k: 1.3 }, { ...drawn, k: 1.4 }, SIZE, 0.4)).toBe(false);
  });

  test("the lineage of a card is what it is made of and what is made of it, and not its neighbours", () => {
    const edges = [[0, 1], [0, 2], [1, 3], [2, 4], [3, 5]] as const;
    expect([...lineageOf(1, edges)].sort()).toEqual([0, 1, 3, 5]);
  });
});
