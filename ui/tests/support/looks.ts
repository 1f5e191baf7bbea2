// How pages look: accessible, within their width, without anything that jumps, and a picture of each for people.
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Browser, Page } from "playwright-core";
import { expect } from "vitest";
import { open, violations } from "./browser";
import type { Server } from "./server";

const pictures = resolve(import.meta.dirname, "../../../target/ui-screenshots");
const WIDTHS = [1280, 1920, 390];
/** What counts as good for people (web.dev/cls); most pages have none at all. */
const MOST_SHIFT = 0.1;

/** Adds up how far things jump without anybody touching the page, from its first paint on. */
const WATCH_SHIFTS = `
  globalThis.shifted = { sum: 0, what: [] };
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      if (entry.hadRecentInput) continue;
      globalThis.shifted.sum += entry.value;
      for (const source of entry.sources) globalThis.shifted.what.push((source.node?.nodeName ?? "?") + "." + (source.node?.className ?? ""));
    }
  }).observe({ type: "layout-shift", buffered: true });
`;

export interface Look {
  /** The name of its pictures, and its path. */
  pages: readonly (readonly [string, string])[];
  /** Refusals of the server that the pages are about. */
  expected?: readonly string[];
  /** Done before a page is looked at. */
  prepare?: (page: Page) => Promise<void>;
}

/** Looks at pages in both themes and at all widths, and says everything that is wrong with them. */
export async function look(browser: Browser, server: Server, { pages, expected = [], prepare }: Look): Promise<void> {
  mkdirSync(pictures, { recursive: true });
  const wrong: string[] = [];
  for (const theme of ["light", "dark"] as const) {
    const { page, wrongs, close } = await open(browser, server, { colorScheme: theme, reducedMotion: "reduce" });
    await page.addInitScript(WATCH_SHIFTS);
    await prepare?.(page);
    for (const [name, path] of pages) {
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.goto(server.url + path);
      await page.getByRole("status").filter({ hasText: /healthy|paused|degraded|reconnecting/ }).first().waitFor();
      await page.getByRole("status", { name: "Loading" }).first().waitFor({ state: "detached" });
      const shifted = await page.evaluate(() => (globalThis as unknown as { shifted: { sum: number; what: string[] } }).shifted);
      if (shifted.sum > MOST_SHIFT) wrong.push(`${name} ${theme}: jumps by ${shifted.sum.toFixed(2)}: ${[...new Set(shifted.what)].join(", ")}`);
      wrong.push(...(await violations(page)).map((each) => `${name} ${theme}: ${each}`));
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: width === 390 ? 844 : width === 1920 ? 1080 : 800 });
        const over = await page.evaluate(() => Math.max(document.documentElement.scrollWidth - innerWidth, (document.querySelector("main")?.scrollWidth ?? 0) - (document.querySelector("main")?.clientWidth ?? 0)));
        if (over > 1) wrong.push(`${name} ${theme} ${String(width)}: ${String(over)} px too wide`);
        await page.screenshot({ path: join(pictures, `${name}-${theme}-${String(width)}.png`) });
      }
    }
    wrongs.splice(0, wrongs.length, ...wrongs.filter((each) => !expected.some((code) => each.includes(code))));
    await close();
  }
  expect(wrong).toEqual([]);
}
