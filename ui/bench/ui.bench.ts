// Figures of the pages in headless Chromium, on a server of this machine. `scripts/ui.sh bench` runs it on a release
// build; SCALE=0.01 makes everything smaller, to see that it works.
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { launch, open } from "../tests/support/browser";
import { Server, until, whyNot } from "../tests/support/server";
import { add, median, quantile, report } from "./figures";

const SCALE = Number(process.env["SCALE"] ?? "1");
const scaled = (full: number, least = 1) => Math.max(least, Math.round(full * SCALE));
const BENCH = process.env["SERVO_BENCH_BIN"] === undefined ? undefined : resolve(process.env["SERVO_BENCH_BIN"]);
const PER_GROUP = 100;
const LINES_PER_SECOND = 10_000;
const LOG_SECONDS = Math.max(3, Math.round(20 * SCALE));
const PAGES = 20;

/** So many assets in groups of a hundred, each made from one or two before it. */
const graph = (assets: number) => `
import servo


def make(number):
    parents = [f"g{parent // ${String(PER_GROUP)}:03}.a{parent:05}" for parent in {number // 2, number * 7 % max(number, 1)} if parent < number]

    @servo.asset(namespace=f"g{number // ${String(PER_GROUP)}:03}", name=f"a{number:05}", deps=[servo.dep(parent) for parent in parents])
    def made() -> int:
        return number

    return made


assets = [make(number) for number in range(${String(assets)})]
`;

/** A million hours, and an asset that writes as fast as it is told to. */
const OTHERS = `
import time

import servo

hours = servo.HourlyPartitions(start="${String(new Date().getUTCFullYear() - Math.max(1, Math.round(114.2 * SCALE)))}-01-01T00:00")


@servo.asset(namespace="long", partitions=hours)
def hourly() -> int:
    """A million partitions."""
    return 1


@servo.asset(namespace="live")
def moment() -> int:
    """Another number every time."""
    return time.time_ns()


@servo.asset(namespace="loud")
def talk() -> int:
    """Writes ${String(LINES_PER_SECOND)} lines a second."""
    start = time.monotonic()
    written = 0
    while (passed := time.monotonic() - start) < ${String(LOG_SECONDS)}:
        while written < passed * ${String(LINES_PER_SECOND)}:
            written += 1
            print(f"line {written} of a log that is long and says little, again and again")
        time.sleep(0.005)
    return written
`;

/** How long something takes, in milliseconds. */
async function timed(what: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await what();
  return performance.now() - start;
}

/** Frames a second while something is done once in each of them, for two seconds. */
async function frames(page: Page, each: string): Promise<number> {
  return page.evaluate(
    ([body]) =>
      new Promise<number>((done) => {
        const step = new Function("index", body ?? "") as (index: number) => void;
        const start = performance.now();
        let drawn = 0;
        const frame = () => {
          const passed = performance.now() - start;
          if (passed >= 2000) {
            done((drawn * 1000) / passed);
            return;
          }
          step(drawn++);
          requestAnimationFrame(frame);
        };
        requestAnimationFrame(frame);
      }),
    [each] as const,
  );
}

const DRAG = `
  const graph = document.querySelector(".graph");
  const bounds = graph.getBoundingClientRect();
  graph.setPointerCapture = () => undefined;
  const at = (type, x) => new PointerEvent(type, { bubbles: true, pointerId: 1, button: 0, clientX: bounds.left + x, clientY: bounds.top + 200 });
  if (index === 0) graph.dispatchEvent(at("pointerdown", 300));
  graph.dispatchEvent(at("pointermove", 300 + (index % 200)));
`;
const WHEEL = `
  const graph = document.querySelector(".graph");
  const bounds = graph.getBoundingClientRect();
  graph.dispatchEvent(new WheelEvent("wheel", { bubbles: true, cancelable: true, deltaY: index % 60 < 30 ? -12 : 12, clientX: bounds.left + 300, clientY: bounds.top + 200 }));
`;

/** Bytes that the largest process of a page has to itself: its private memory, without what all of them share. */
async function rendererBytes(browser: Browser): Promise<number> {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = (await session.send("SystemInfo.getProcessInfo")) as { processInfo: { id: number; type: string }[] };
  await session.detach();
  const sizes = processInfo.filter((each) => each.type === "renderer").map(({ id }) => {
    const path = `/proc/${String(id)}/smaps_rollup`;
    if (!existsSync(path)) return 0;
    return [...readFileSync(path, "utf8").matchAll(/^Private_(?:Clean|Dirty):\s+(\d+) kB/gm)].reduce((sum, [, kb]) => sum + Number(kb) * 1024, 0);
  });
  return Math.max(0, ...sizes);
}

/** Pages of a policy without unsafe-eval cannot make functions; a browser for benchmarks may. */
const relaxed = { bypassCSP: true } as const;

const wholeGraph = (page: Page, cards: number) => page.locator(`[data-testid="graph"][data-cards="${String(cards)}"] canvas`).waitFor();

describe.skipIf(whyNot() !== undefined)("the web UI", () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(async () => {
    await browser.close();
    report({ scale: SCALE, chromium: browser.version() });
  });

  test("first page, navigation, and the graph of 2,000 assets", async () => {
    const assets = scaled(2000, 200);
    const server = await Server.start({ large: graph(assets) });
    try {
      const firsts: number[] = [];
      const laters: number[] = [];
      let script = 0;
      for (let round = 0; round < 5; round++) {
        // A context of its own has an empty cache.
        const { page, close } = await open(browser, server);
        firsts.push(
          await timed(async () => {
            await page.goto(server.url);
            await page.getByText(/All is well|Needs attention/).first().waitFor();
          }),
        );
        script = await page.evaluate(() => (performance.getEntriesByType("resource") as PerformanceResourceTiming[]).filter((each) => each.name.endsWith(".js")).reduce((sum, each) => sum + each.encodedBodySize, 0));
        await page.getByRole("link", { name: "Runs", exact: true }).click();
        await page.getByText("No runs yet").waitFor();
        for (const [name, text] of [
          ["Home", /All is well|Needs attention/],
          ["Runs", /No runs yet/],
        ] as const)
          laters.push(
            await timed(async () => {
              await page.getByRole("link", { name, exact: true }).click();
              await page.getByText(text).first().waitFor();
            }),
          );
        await close();
      }
      add("first page usable, cold cache", median(firsts), "ms", 500);
      add("later navigation", median(laters), "ms", 100);
      add("JavaScript of the first page, compressed", script / 1000, "kB", 180);

      const groups = Array.from({ length: Math.ceil(assets / PER_GROUP) }, (_, group) => `g${String(group).padStart(3, "0")}`).join(",");
      const { page, close } = await open(browser, server, relaxed);
      const whole = await timed(async () => {
        await page.goto(`${server.url}/assets?open=${groups}`);
        await wholeGraph(page, assets);
      });
      add("graph of 2,000 assets, laid out", whole, "ms", 1500);
      add("pan of it", await frames(page, DRAG), "fps", 50, "higher");
      add("zoom of it", await frames(page, WHEEL), "fps", 50, "higher");
      await close();
    } finally {
      await server.stop();
    }
  });

  test("the graph of 10,000 assets, in groups", async () => {
    const assets = scaled(10_000, 300);
    const server = await Server.start({ large: graph(assets) });
    try {
      const { page, close } = await open(browser, server);
      const grouped = await timed(async () => {
        await page.goto(`${server.url}/assets`);
        await wholeGraph(page, Math.ceil(assets / PER_GROUP));
      });
      add("graph of 10,000 assets, grouped", grouped, "ms", 6000);
      await close();
    } finally {
      await server.stop();
    }
  });

  test("a million partitions, events, a loud log, and many pages", async () => {
    const server = await Server.start({ others: OTHERS });
    try {
      const watched = await open(browser, server, relaxed);
      const { page } = watched;
      await page.goto(`${server.url}/assets/long/hourly?tab=definition`);
      await page.getByText("As declared").waitFor();
      const heat = async (what: () => Promise<void>) => {
        const answered = page.waitForResponse((response) => response.url().includes("/partitions/summary"));
        const ms = await timed(async () => {
          await what();
          await answered;
          await page.locator("rect.cell").first().waitFor();
        });
        return { ms, bytes: (await (await answered).body()).length };
      };
      const first = await heat(() => page.getByRole("link", { name: /^Partitions/ }).click());
      add("heat map of 1,000,000 partitions", first.ms, "ms", 300);
      add("bytes of it", first.bytes / 1000, "kB", 100);
      const zooms: number[] = [];
      for (let step = 0; step < 3; step++) {
        const cells = await page.locator("rect.cell").count();
        await page.locator("rect.cell").nth(Math.floor(cells * 0.4)).hover();
        await page.mouse.down();
        await page.locator("rect.cell").nth(Math.floor(cells * 0.5)).hover();
        await page.mouse.up();
        const zoom = page.getByRole("button", { name: /^Zoom in/ });
        if ((await zoom.count()) === 0) break;
        zooms.push((await heat(() => zoom.click())).ms);
      }
      if (zooms.length > 0) add("zoom step of it", median(zooms), "ms", 100);

      // From the moment that the server says that it is durable to the frame that shows it.
      await server.materialize({ selection: "live.moment" });
      await page.goto(`${server.url}/runs`);
      await page.getByRole("list", { name: "Runs" }).getByRole("listitem").first().waitFor();
      await page.evaluate(() => {
        const seen: Record<string, number> = {};
        (globalThis as unknown as { seen: Record<string, number> }).seen = seen;
        new MutationObserver(() => {
          for (const [run] of document.body.innerHTML.matchAll(/run_[a-z2-7]{26}/g)) seen[run] ??= performance.timeOrigin + performance.now();
        }).observe(document.body, { subtree: true, childList: true, attributes: true });
      });
      const delays: number[] = [];
      for (let round = 0; round < 40; round++) {
        const { run_id: run } = await server.ask("runs", { selection: "live.moment" });
        const durable = performance.timeOrigin + performance.now();
        const at = await until("the page shows it", () => page.evaluate((id) => (globalThis as unknown as { seen: Record<string, number> }).seen[id], String(run)));
        delays.push(Math.max(0, at - durable));
        await until("it has ended", async () => ((await server.ask(`runs/${String(run)}`))["state"] === "SUCCEEDED" ? true : undefined));
        // Pages merge what happens in quick succession: each is measured by itself.
        await new Promise((done) => setTimeout(done, 500));
      }
      add("event in the engine to the page, p95", quantile(delays, 0.95), "ms", 150);

      const session = await page.context().newCDPSession(page);
      await session.send("Performance.enable");
      const { run_id: loud } = await server.ask("runs", { selection: "loud.talk" });
      await page.goto(`${server.url}/runs/${String(loud)}`);
      await page.getByRole("log").getByText(/line \d+/).first().waitFor();
      // The longest time in which the page could draw nothing.
      const longest = page.evaluate(
        (ms) =>
          new Promise<number>((done) => {
            let most = 0;
            let last = performance.now();
            const end = last + ms;
            const frame = (now: number) => {
              most = Math.max(most, now - last);
              last = now;
              if (now >= end) done(most);
              else requestAnimationFrame(frame);
            };
            requestAnimationFrame(frame);
          }),
        LOG_SECONDS * 800,
      );
      let heap = 0;
      let resident = 0;
      const isOver = longest.then(() => true);
      for (;;) {
        const { metrics } = await session.send("Performance.getMetrics");
        heap = Math.max(heap, metrics.find((each) => each.name === "JSHeapUsedSize")?.value ?? 0);
        resident = Math.max(resident, await rendererBytes(browser));
        if (await Promise.race([isOver, new Promise<false>((done) => setTimeout(() => { done(false); }, 250))])) break;
      }
      add("live log of 10,000 lines/s: longest frame", await longest, "ms", 250);
      add("live log of 10,000 lines/s: JavaScript heap", heap / 1e6, "MB", 150);
      add("live log of 10,000 lines/s: memory of the page's process", resident / 1e6, "MB", 150);
      await watched.close();

      const before = server.rss();
      const pages = [];
      for (let each = 0; each < PAGES; each++) {
        const opened = await open(browser, server);
        await opened.page.goto(server.url + (["/", "/assets", "/runs", "/automation"][each % 4] ?? "/"));
        await opened.page.getByRole("status").filter({ hasText: "healthy" }).first().waitFor();
        pages.push(opened);
      }
      add("RSS of the server added by 20 pages", Math.max(0, server.rss() - before) / 1e6, "MB", 30);
      for (const opened of pages) await opened.close();
    } finally {
      await server.stop();
    }
  });

  test.skipIf(BENCH === undefined || !existsSync(BENCH))("a million runs, and a run of 10,000 tasks", async () => {
    const tasks = scaled(10_000, 500);
    const server = await Server.start({ others: OTHERS }, [], {
      tenant: "bench",
      prepare: (directory) => {
        const grown = spawnSync(BENCH ?? "", ["--grow-history", join(directory, ".servo"), "--runs", String(scaled(1_000_000, 2000)), "--tasks", String(tasks)], { encoding: "utf8" });
        expect(grown.status, grown.stderr).toBe(0);
        // The command line keeps its secret beside the log; nothing here is known by a run key of before.
        writeFileSync(join(directory, ".servo/tenant=bench/secret.key"), randomBytes(32), { mode: 0o600 });
      },
    });
    try {
      const { page, close } = await open(browser, server, relaxed);
      await page.goto(server.url);
      await page.getByText(/All is well|Needs attention/).first().waitFor();
      const runs = page.getByRole("list", { name: "Runs" }).getByRole("listitem");
      const times: number[] = [];
      for (let round = 0; round < 3; round++)
        times.push(
          await timed(async () => {
            await page.goto(`${server.url}/runs`);
            await runs.first().waitFor();
          }),
        );
      add("runs page with 1,000,000 runs", median(times), "ms", 500);
      const { items } = (await server.ask("runs?limit=1")) as { items: { run_id: string; tasks_total: number }[] };
      expect(items[0]?.tasks_total).toBe(tasks);
      const detail = await timed(async () => {
        await page.goto(`${server.url}/runs/${items[0]?.run_id ?? ""}`);
        await page.getByRole("list", { name: "Tasks over time" }).getByRole("listitem").nth(5).waitFor();
      });
      add("run detail with 10,000 tasks", detail, "ms", 1000);
      const scroll = `globalThis.scrolled ??= document.querySelector('[role="list"][aria-label="Tasks over time"]').closest(".scroll"); globalThis.scrolled.scrollTop += 40;`;
      add("scrolling of its tasks", await frames(page, scroll), "fps", 50, "higher");
      await close();
    } finally {
      await server.stop();
    }
  });
});
