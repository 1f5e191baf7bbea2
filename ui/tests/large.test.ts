// A large workspace: pages ask for a part of it, however much there is. Figures are printed, sizes are held to.
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { launch, open, type Watched } from "./support/browser";
import { Server, until, whyNot } from "./support/server";

const ASSETS = 2000;
const RUNS = 240;
const PROJECT = `
import servo

hours = servo.HourlyPartitions(start="2012-01-01T00:00")


def make(number):
    parents = [f"g{parent // 100:02}.a{parent:04}" for parent in {number // 2, number * 7 % max(number, 1)} if parent < number]

    @servo.asset(namespace=f"g{number // 100:02}", name=f"a{number:04}", deps=[servo.dep(parent) for parent in parents])
    def made() -> int:
        return number

    return made


assets = [make(number) for number in range(${String(ASSETS)})]


@servo.asset(namespace="long", partitions=hours)
def hourly() -> int:
    """More than a hundred thousand partitions."""
    return 1
`;

const say = (text: string) => process.stdout.write(`  ${text}\n`);

describe.skipIf(whyNot() !== undefined)("a large workspace", () => {
  let browser: Browser;
  let server: Server;

  beforeAll(async () => {
    browser = await launch();
    server = await Server.start({ large: PROJECT });
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });

  /** Requests and bytes that something takes, and how long. */
  async function measured(watched: Watched, what: () => Promise<void>): Promise<{ requests: number; bytes: number; ms: number }> {
    const before = { ...watched.traffic };
    const start = performance.now();
    await what();
    const ms = Math.round(performance.now() - start);
    return { requests: watched.traffic.requests - before.requests, bytes: watched.traffic.bytes - before.bytes, ms };
  }

  test("the first page is small and soon there", async () => {
    const watched = await open(browser, server);
    const { requests, bytes, ms } = await measured(watched, async () => {
      await watched.page.goto(server.url);
      await watched.page.getByText("All is well").waitFor();
    });
    say(`first page usable after ${String(ms)} ms, ${String(requests)} answers`);
    expect(requests).toBeLessThan(32);
    expect(bytes).toBeLessThan(1_000_000);
    const later = await measured(watched, async () => {
      await watched.page.getByRole("link", { name: "Runs", exact: true }).click();
      await watched.page.getByText("No runs yet").waitFor();
    });
    say(`later navigation ${String(later.ms)} ms`);
    await watched.close();
  });

  test("a graph of two thousand assets is closed groups first, and laid out whole when asked", async () => {
    const watched = await open(browser, server);
    const { page } = watched;
    const first = await measured(watched, async () => {
      await page.goto(`${server.url}/assets`);
      await page.locator('[data-testid="graph"][data-cards="21"]').waitFor();
      await page.getByRole("button", { name: /g00 100 assets/ }).waitFor();
    });
    say(`graph of ${String(ASSETS)} assets in closed groups after ${String(first.ms)} ms, ${String(Math.round(first.bytes / 1000))} kB in ${String(first.requests)} answers`);
    expect(first.requests).toBeLessThan(25);
    const groups = Array.from({ length: ASSETS / 100 }, (_, group) => `g${String(group).padStart(2, "0")}`).join(",");
    const whole = await measured(watched, async () => {
      await page.goto(`${server.url}/assets?open=${groups}`);
      await page.locator(`[data-testid="graph"][data-cards="${String(ASSETS + 1)}"] canvas`).waitFor();
    });
    say(`whole graph after ${String(whole.ms)} ms`);
    const frames = await page.evaluate(async () => {
      const graph = document.querySelector(".graph");
      if (graph === null) return 0;
      const bounds = graph.getBoundingClientRect();
      const at = (type: string, x: number) => new PointerEvent(type, { bubbles: true, pointerId: 1, button: 0, clientX: bounds.left + x, clientY: bounds.top + 200 });
      graph.setPointerCapture = () => undefined;
      graph.dispatchEvent(at("pointerdown", 300));
      const start = performance.now();
      let drawn = 0;
      while (performance.now() - start < 1000) {
        graph.dispatchEvent(at("pointermove", 300 + (drawn % 200)));
        await new Promise((done) => requestAnimationFrame(done));
        drawn++;
      }
      graph.dispatchEvent(at("pointerup", 300));
      return drawn;
    });
    say(`${String(frames)} frames a second while it is moved`);
    await watched.close();
  });

  test("the list of assets asks for a page at a time", async () => {
    const watched = await open(browser, server);
    const { page } = watched;
    const { bytes } = await measured(watched, async () => {
      await page.goto(`${server.url}/assets?view=list`);
      await page.getByRole("list", { name: "Assets" }).getByText("g00.a0000").waitFor();
    });
    say(`list of assets: ${String(Math.round(bytes / 1000))} kB with the page itself`);
    expect(bytes).toBeLessThan(900_000);
    expect(await page.getByRole("listitem").count()).toBeLessThan(80);
    await watched.close();
  });

  test("a heat map of more than a hundred thousand partitions is a few hundred buckets", async () => {
    const watched = await open(browser, server);
    const { page } = watched;
    await page.goto(`${server.url}/assets/long/hourly?tab=definition`);
    await page.getByText("As declared").waitFor();
    const { bytes, ms } = await measured(watched, async () => {
      await page.getByRole("link", { name: /Partitions/ }).click();
      await page.locator("rect.cell").first().waitFor();
    });
    say(`heat map after ${String(ms)} ms, ${String(Math.round(bytes / 1000))} kB`);
    expect(await page.locator("rect.cell").count()).toBeLessThanOrEqual(600);
    expect(bytes).toBeLessThan(150_000);
    await watched.close();
  });

  test("hundreds of runs are asked for a page at a time", async () => {
    // Nothing is dispatched: what is measured is lists, not workers.
    await server.ask("pauses", { scope: "all", reason: "figures" });
    for (let first = 0; first < RUNS; first += 20) await Promise.all(Array.from({ length: 20 }, (_, index) => server.ask("runs", { selection: `g${String((first + index) % 20).padStart(2, "0")}.a${String((first + index) % 20).padStart(2, "0")}00` })));
    const watched = await open(browser, server);
    const { page } = watched;
    const list = page.getByRole("list", { name: "Runs" });
    const first = await measured(watched, async () => {
      await page.goto(`${server.url}/runs`);
      await list.getByRole("listitem").first().waitFor();
      await list.getByRole("listitem").nth(10).waitFor();
    });
    say(`runs page: ${String(first.ms)} ms, ${String(Math.round(first.bytes / 1000))} kB in ${String(first.requests)} answers`);
    expect(first.requests).toBeLessThan(32);
    expect(first.bytes).toBeLessThan(900_000);
    expect(await list.getByRole("listitem").count()).toBeLessThan(60);
    const more = await measured(watched, async () => {
      await page.locator(".vlist .scroll").evaluate((box) => {
        box.scrollTop = box.scrollHeight;
      });
      await until("the next page is there", async () => ((await page.locator(".virtual").evaluate((box) => box.clientHeight)) > 60 * 34 ? true : undefined));
    });
    expect(more.requests).toBeLessThan(10);
    expect(more.bytes).toBeLessThan(200_000);
    const home = await measured(watched, async () => {
      await page.goto(server.url);
      await page.getByRole("region", { name: "Last 24 hours" }).getByText(/only runs that failed and what was made last are known/).waitFor();
    });
    say(`home with ${String(RUNS)} runs of the day: ${String(Math.round(home.bytes / 1000))} kB in ${String(home.requests)} answers`);
    expect(home.requests).toBeLessThan(40);
    expect(home.bytes).toBeLessThan(1_300_000);
    await watched.close();
  });

  test("a run of two thousand tasks draws the rows that are seen", async () => {
    const { run_id: run } = await server.ask("runs", { selection: "g*.*" });
    const watched = await open(browser, server);
    const { page } = watched;
    const { requests, bytes, ms } = await measured(watched, async () => {
      await page.goto(`${server.url}/runs/${String(run)}`);
      await page.getByText(`0 of ${ASSETS.toLocaleString("en")}`).first().waitFor();
      await page.getByText("g00.a0000").first().waitFor();
    });
    say(`run of ${String(ASSETS)} tasks after ${String(ms)} ms, ${String(Math.round(bytes / 1000))} kB in ${String(requests)} answers beside its stream`);
    expect(requests).toBeLessThan(40);
    expect(bytes).toBeLessThan(1_000_000);
    // Rows that nobody sees are not there.
    expect(await page.locator("main *").count()).toBeLessThan(4000);
    await watched.close();
  });

  test("a backfill of a hundred thousand partitions is its chunks a page at a time, and what is to come in one figure", async () => {
    const { backfill_id: id, total_partitions: total } = await server.ask("orchestration/backfills", { selection: "long.hourly", partitions: { ranges: ["2012-01-01..2023-12-31"] }, chunk_size: 50 });
    const watched = await open(browser, server);
    const { page } = watched;
    const { requests, bytes, ms } = await measured(watched, async () => {
      await page.goto(`${server.url}/backfills/${String(id)}`);
      await page.getByRole("list", { name: "Map of chunks" }).getByText(/partitions not planned yet/).waitFor();
    });
    say(`backfill of ${String(total)} partitions after ${String(ms)} ms, ${String(Math.round(bytes / 1000))} kB in ${String(requests)} answers`);
    expect(Number(total)).toBeGreaterThan(100_000);
    expect(requests).toBeLessThan(32);
    expect(bytes).toBeLessThan(900_000);
    expect(await page.locator("rect").count()).toBeLessThan(2500);
    const list = await measured(watched, async () => {
      await page.getByRole("link", { name: "Backfills", exact: true }).first().click();
      await page.getByText(`0 of ${Number(total).toLocaleString("en")}`).waitFor();
    });
    expect(list.requests).toBeLessThan(20);
    expect(list.bytes).toBeLessThan(200_000);
    await watched.close();
  });
});
