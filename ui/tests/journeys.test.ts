// Journeys in a real browser, on a real server with real Python.
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { launch, open, violations } from "./support/browser";
import { PIPELINE } from "./support/pipeline.py";
import { Server, until, whyNot } from "./support/server";

const reason = whyNot();
if (reason !== undefined) process.stderr.write(`journeys of the web UI are skipped: ${reason}\n`);
const pictures = resolve(import.meta.dirname, "../../target/ui-screenshots");

const health = (page: Page, word: string) => page.getByRole("status").filter({ hasText: word }).first();
/** The word of the head of a run page. */
const runState = (page: Page, word: string) => page.locator(".runbar .state", { hasText: word });

describe.skipIf(reason !== undefined)("journeys", () => {
  let browser: Browser;
  let server: Server;

  beforeAll(async () => {
    mkdirSync(pictures, { recursive: true });
    browser = await launch();
    server = await Server.start({ pipeline: PIPELINE });
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });

  test("from servo init to a first run", async () => {
    const first = await Server.start("init");
    try {
      const { page, close } = await open(browser, first);
      await page.goto(first.url);
      await page.getByText("All is well").waitFor();
      await page.getByText("No run was ever asked for.").waitFor();
      await page.getByRole("link", { name: "Assets" }).click();
      await page.getByRole("button", { name: /raw\.readings Never made/ }).waitFor();
      await page.getByRole("button", { name: "Materialize all…" }).click();
      await page.getByRole("radio", { name: /The newest/ }).waitFor();
      await page.getByRole("radio", { name: "These" }).check();
      await page.getByLabel("Keys and ranges of partitions").fill("2026-01-01..2026-01-03");
      await page.getByRole("button", { name: "Materialize 9 tasks" }).click();
      await page.getByRole("link", { name: "Watch" }).click();
      await runState(page, "Succeeded").waitFor();
      await page.getByText("9 of 9").first().waitFor();
      await close();
    } finally {
      await first.stop();
    }
  });

  test("an asset is materialized from the graph and turns green without a reload", async () => {
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/assets`);
    await page.getByRole("button", { name: /raw\.source Never made/ }).click();
    await page.getByRole("complementary", { name: "raw.source" }).getByRole("button", { name: "Materialize…" }).click();
    await page.getByRole("button", { name: "Materialize raw.source" }).click();
    const node = page.getByRole("button", { name: /raw\.source Materialized/ });
    await node.waitFor();
    expect(await node.getAttribute("class")).toContain("is-succeeded");
    await close();
  });

  test("the form of the configuration is what the run gets", async () => {
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/assets/clean/tidy`);
    await page.getByRole("button", { name: "Materialize…" }).click();
    await page.getByLabel(/clean\.tidy:factor/).fill("5");
    await page.getByRole("button", { name: "Materialize clean.tidy" }).click();
    const run = await until("the run is there", async () => {
      const { items } = (await server.ask("runs?asset=clean.tidy&state=SUCCEEDED")) as { items: { config: unknown }[] };
      return items[0];
    });
    expect(run.config).toEqual({ "clean.tidy:factor": 5 });
    await close();
  });

  test("a failure is one click from home, with the user's own line and its log on screen", async () => {
    await server.materialize({ selection: "broken.divide" }, ["FAILED"]);
    const { page, close } = await open(browser, server);
    await page.goto(server.url);
    await page.locator("li", { hasText: "broken.divide" }).getByRole("link", { name: "See why" }).click();
    await page.getByText("ZeroDivisionError: division by zero").first().waitFor();
    await page.getByTestId("user-line").getByText("return 1 / zero").waitFor();
    await page.getByRole("log").getByText("about to divide").waitFor();
    await close();
  });

  test("data that a check blocked is approved and counts", async () => {
    await server.materialize({ selection: "held.short" }, ["FAILED"]);
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/quarantine`);
    const waiting = page.getByRole("region", { name: "held.short" });
    await waiting.getByText(/1 row/).first().waitFor();
    await waiting.getByRole("button", { name: "Approve…" }).click();
    await page.getByLabel("Reason, for the audit").fill("looked at it");
    await page.getByRole("button", { name: "Approve the data" }).click();
    await page.getByText("Nothing waits for review").waitFor();
    const { health } = (await server.ask("assets/held/short")) as { health: unknown };
    expect(health).toBeDefined();
    await page.goto(`${server.url}/assets/held/short?tab=history`);
    await page.getByRole("list", { name: "Materializations" }).getByRole("listitem").first().waitFor();
    await close();
  });

  test("partitions that are brushed in the heat map are materialized", async () => {
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/assets/raw/readings`);
    const cells = page.locator("rect.cell");
    await cells.nth(30).waitFor();
    expect(await cells.count()).toBe(31);
    await cells.nth(2).hover();
    await page.mouse.down();
    await cells.nth(4).hover();
    await page.mouse.up();
    await page.getByRole("button", { name: "Materialize 3 partitions…" }).click();
    await page.getByRole("button", { name: "Materialize 3 partitions", exact: true }).click();
    await page.locator("rect.cell", { hasText: "2026-01-05: materialized" }).waitFor({ state: "attached" });
    await page.getByText("3 of 31").first().waitFor();
    await close();
  });

  test("everything can be reached with the keyboard alone", async () => {
    await server.materialize({ selection: "raw.source" });
    const { page, close } = await open(browser, server);
    await page.goto(server.url);
    await page.getByRole("heading", { name: "Home" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.keyboard.type("tidy");
    await page.getByRole("option", { name: /clean\.tidy/ }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "clean.tidy" }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("r");
    await page.getByRole("list", { name: "Runs" }).getByRole("listitem").first().waitFor();
    await page.keyboard.press("j");
    await until("the first row has the focus", () => page.evaluate(() => document.activeElement?.getAttribute("data-index") === "0" || undefined));
    await page.keyboard.press("Enter");
    await page.getByText("Tasks over time").waitFor();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog", { name: "Keys" }).waitFor({ state: "detached" });
    await page.keyboard.press("m");
    await page.getByRole("dialog", { name: "Materialize" }).waitFor();
    await page.keyboard.type("raw.source");
    await page.getByRole("button", { name: "Materialize raw.source" }).waitFor();
    await page.keyboard.press("Enter");
    await runState(page, "Succeeded").waitFor();
    await close();
  });

  test("a schedule is paused, resumed and ticked by hand", async () => {
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/automation`);
    const row = page.getByRole("row", { name: /nightly/ });
    await row.getByRole("switch").click();
    await row.getByText("Paused", { exact: true }).waitFor();
    await row.getByRole("switch").click();
    await row.getByText("Active").waitFor();
    await row.getByRole("link", { name: "nightly" }).click();
    await page.getByRole("button", { name: "Tick now…" }).click();
    await page.getByRole("button", { name: "Tick now", exact: true }).click();
    await page.getByText("by hand").waitFor();
    await page.getByText("Triggered").first().waitFor();
    await close();
  });

  test("a setting is changed and dispatching is paused and resumed", async () => {
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/settings/settings`);
    await page.getByRole("button", { name: "Change recent_runs" }).click();
    await page.getByLabel(/Value, from/).fill("900");
    await page.getByRole("button", { name: "Change to 900" }).click();
    await page.getByRole("row", { name: /recent_runs 900/ }).waitFor();
    await page.goto(`${server.url}/settings`);
    await page.getByRole("button", { name: "Pause…" }).click();
    await page.getByRole("button", { name: "Pause everything" }).click();
    await health(page, "paused").waitFor();
    await page.getByRole("button", { name: "Resume everything" }).click();
    await health(page, "healthy").waitFor();
    await close();
  });

  test("a server that is killed in the middle of a run is waited for, and nothing is lost", async () => {
    const { page, close } = await open(browser, server);
    await page.goto(server.url);
    const { run_id: run } = await server.ask("runs", { selection: "slow.steps" });
    await page.goto(`${server.url}/runs/${String(run)}`);
    await page.getByRole("log").getByText(/step \d+/).first().waitFor();
    await server.kill();
    await health(page, "reconnecting").waitFor();
    await page.getByText("slow.steps").first().waitFor();
    server.release("finish");
    await server.run();
    await health(page, "healthy").waitFor();
    await runState(page, "Succeeded").waitFor({ timeout: 55_000 });
    await close();
  });

  test("a browser whose session is over is told how to come back, and comes back to the same page", async () => {
    const { page, wrongs, close } = await open(browser, server);
    await page.goto(`${server.url}/assets/clean/tidy?tab=definition`);
    await page.getByText("As declared").waitFor();
    await page.context().clearCookies();
    await page.keyboard.press("g");
    await page.keyboard.press("s");
    await page.getByText("This browser is not signed in").waitFor();
    const other = await page.context().newPage();
    await other.goto(await server.entrance("/runs"));
    await other.getByRole("heading", { name: "Runs" }).waitFor();
    await page.getByRole("heading", { name: "How full it is" }).waitFor();
    // The refusals are what this is about.
    const rest = wrongs.filter((each) => !each.includes("401"));
    wrongs.length = 0;
    wrongs.push(...rest);
    await close();
  });

  test("every page is accessible, fits its width, and looks as it should in both themes", async () => {
    await server.materialize({ selection: "held.short" }, ["FAILED"]);
    const failed = await server.materialize({ selection: "broken.divide" }, ["FAILED"]);
    const pages: [string, string][] = [
      ["home", "/"],
      ["graph", "/assets"],
      ["graph-side", "/assets?asset=raw%2Fsource"],
      ["assets", "/assets?view=list"],
      ["asset", "/assets/raw/readings"],
      ["asset-history", "/assets/raw/readings?tab=history"],
      ["asset-lineage", "/assets/clean/tidy?tab=lineage"],
      ["asset-checks", "/assets/raw/source?tab=checks"],
      ["asset-definition", "/assets/clean/tidy?tab=definition"],
      ["runs", "/runs"],
      ["run", `/runs/${failed}`],
      ["automation", "/automation"],
      ["schedule", "/automation/schedules/nightly"],
      ["quarantine", "/quarantine"],
      ["settings", "/settings"],
      ["workers", "/settings/workers"],
      ["settings-all", "/settings/settings"],
      ["audit", "/settings/audit"],
      ["unknown-asset", "/assets/raw/nothing"],
      ["unknown-page", "/nowhere"],
    ];
    const wrong: string[] = [];
    for (const theme of ["light", "dark"] as const) {
      const { page, wrongs, close } = await open(browser, server, { colorScheme: theme, reducedMotion: "reduce" });
      for (const [name, path] of pages) {
        await page.setViewportSize({ width: 1280, height: 800 });
        await page.goto(server.url + path);
        await page.getByRole("status", { name: "Loading" }).first().waitFor({ state: "detached" });
        await health(page, "healthy").waitFor();
        wrong.push(...(await violations(page)).map((each) => `${name} ${theme}: ${each}`));
        for (const width of [1280, 1920, 390]) {
          await page.setViewportSize({ width, height: width === 390 ? 844 : width === 1920 ? 1080 : 800 });
          const over = await page.evaluate(() => Math.max(document.documentElement.scrollWidth - innerWidth, (document.querySelector("main")?.scrollWidth ?? 0) - (document.querySelector("main")?.clientWidth ?? 0)));
          if (over > 1) wrong.push(`${name} ${theme} ${String(width)}: ${String(over)} px too wide`);
          await page.screenshot({ path: resolve(pictures, `${name}-${theme}-${String(width)}.png`) });
        }
      }
      // Addresses of what is not there are answered with 404, and the browser says so.
      const rest = wrongs.filter((each) => !each.includes("404"));
      wrongs.length = 0;
      wrongs.push(...rest);
      await close();
    }
    expect(wrong).toEqual([]);
  }, 120_000);

  test("pages are served with a strict policy, and nothing that is not there is a page", async () => {
    const home = await fetch(server.url, { headers: { "accept-encoding": "br" } });
    const policy = home.headers.get("content-security-policy") ?? "";
    expect(policy).toContain("script-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain("unsafe");
    expect(home.headers.get("x-frame-options")).toBe("DENY");
    const script = /src="(\/static\/[^"]+\.js)"/.exec(await home.text())?.[1] ?? "";
    expect((await fetch(server.url + script)).headers.get("cache-control")).toContain("immutable");
    for (const path of ["/static/nothing.js", "/../Cargo.toml", "/..%2f..%2fCargo.toml", "/api/v1/nothing", "/nothing.css"]) expect((await fetch(server.url + path)).headers.get("content-type"), path).not.toContain("javascript");
    expect((await fetch(`${server.url}/static/nothing.js`)).status).toBe(404);
    expect((await fetch(`${server.url}/runs`, { method: "POST" })).status).toBe(405);
  });
});
