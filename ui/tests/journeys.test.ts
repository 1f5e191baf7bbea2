// Journeys in a real browser, on a real server with real Python.
import { readFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { launch, open, violations } from "./support/browser";
import { look } from "./support/looks";
import { PIPELINE } from "./support/pipeline.py";
import { Server, until, whyNot } from "./support/server";

const reason = whyNot();
if (reason !== undefined) process.stderr.write(`journeys of the web UI are skipped: ${reason}\n`);

const health = (page: Page, word: string) => page.getByRole("status").filter({ hasText: word }).first();
/** The word of the head of a run page. */
const runState = (page: Page, word: string) => page.locator(".runbar .state", { hasText: word });

describe.skipIf(reason !== undefined)("journeys", () => {
  let browser: Browser;
  let server: Server;

  beforeAll(async () => {
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
    const made = async () => (await server.ask("runs?asset=raw.source&state=SUCCEEDED"))["items"] as unknown[];
    const before = (await made()).length;
    await page.getByRole("button", { name: /raw\.source (Never made|Materialized)/ }).click();
    await page.getByRole("complementary", { name: "raw.source" }).getByRole("button", { name: "Materialize…" }).click();
    await page.getByRole("button", { name: "Materialize raw.source" }).click();
    await until("it is made", async () => ((await made()).length > before ? true : undefined));
    const node = page.getByRole("button", { name: /raw\.source Materialized/ });
    await node.waitFor();
    expect(await node.getAttribute("class")).toContain("is-succeeded");
    await close();
  });

  test("cards of the graph say more the nearer one comes, and are dots from afar", async () => {
    await server.materialize({ selection: "raw.source" });
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/assets?selection=${encodeURIComponent("raw.source or clean.tidy")}`);
    const graph = page.getByTestId("graph");
    const node = page.getByRole("button", { name: /raw\.source Materialized/ });
    await node.waitFor();
    expect([await graph.getAttribute("data-level"), await node.getByText("rows").count()]).toEqual(["middle", 0]);
    const press = async (name: string, level: string) => {
      for (let press = 0; press < 12 && (await graph.getAttribute("data-level")) !== level; press++) await page.getByRole("button", { name }).click();
      expect(await graph.getAttribute("data-level")).toBe(level);
    };
    await press("Zoom in", "near");
    await node.getByText(/3 rows/).waitFor();
    await node.getByText(/1 check, passed · no owner/).waitFor();
    expect(await violations(page)).toEqual([]);
    await press("Zoom out", "far");
    await node.waitFor({ state: "detached" });
    // Pointing at a dot says what it is.
    const [width, height] = await graph.evaluate((box) => [box.clientWidth, box.clientHeight]);
    const bounds = await graph.boundingBox();
    const hint = page.locator(".graph-hint");
    for (let x = 0; x < width && (await hint.count()) === 0; x += 12) await page.mouse.move((bounds?.x ?? 0) + x, (bounds?.y ?? 0) + height / 2);
    expect(await hint.innerText()).toMatch(/^(raw\.source|clean\.tidy): /);
    await page.getByRole("button", { name: "Fit" }).click();
    await node.waitFor();
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

  test("a stale asset says why, and leads to the cause", async () => {
    await server.materialize({ selection: "+live.copy" });
    await server.materialize({ selection: "live.moment" });
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/assets`);
    await page.getByRole("button", { name: /live\.copy Stale/ }).click();
    await page.goto(`${server.url}/assets/live/copy`);
    const why = page.getByRole("region", { name: "Why it is stale" });
    await why.getByText(/live\.moment/).first().waitFor();
    await why.getByRole("link", { name: /^See live\.moment/ }).click();
    await page.getByRole("heading", { name: "live.moment" }).waitFor();
    await page.getByRole("list", { name: "Materializations" }).getByRole("listitem").first().waitFor();
    await server.materialize({ selection: "live.copy" });
    await page.goto(`${server.url}/assets/live/copy`);
    await page.getByText("everything is made").waitFor();
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

  test("a run says what happened, which plan it followed and what decided how long it took", async () => {
    const run = await server.materialize({ selection: "+clean.tidy" });
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/runs/${run}?tab=events`);
    const events = page.getByRole("list", { name: "Events of the run" });
    await events.getByText("clean.tidy succeeded").waitFor();
    expect((await events.getByRole("listitem").allInnerTexts())[0]).toContain("Asked for");
    await page.getByRole("link", { name: "Plan", exact: true }).click();
    await page.getByRole("region", { name: "Plan" }).getByText("2 tasks in 2 stages").waitFor();
    await page.getByRole("region", { name: "Critical path" }).getByRole("button", { name: "raw.source" }).click();
    expect(page.url()).toContain("task=");
    await page.getByRole("button", { name: "By worker" }).click();
    await page.getByRole("list", { name: "Workers over time" }).getByText("2 of 2").waitFor();
    await close();
  });

  test("the list of assets is sorted by the server, with durations and what automates them", async () => {
    await server.materialize({ selection: "+clean.tidy" });
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/assets?view=list`);
    const tidy = page.getByRole("list", { name: "Assets" }).getByRole("listitem").filter({ hasText: "clean.tidy" });
    await tidy.getByRole("img", { name: /took/ }).waitFor();
    await tidy.getByRole("link", { name: "nightly" }).waitFor();
    await page.getByLabel("Order").selectOption("-last_success_at");
    await until("what was made last comes first", async () => ((await page.getByRole("list", { name: "Assets" }).getByRole("listitem").first().innerText()).includes("clean.tidy") ? true : undefined));
    await close();
  });

  test("late assets are on home, the late ones first, with since when and what to do", async () => {
    await server.materialize({ selection: "timely.*" });
    await until("it is late", async () => {
      const { items } = (await server.ask("freshness?status=FAIL")) as { items: { asset_key: string }[] };
      return items.some((each) => each.asset_key === "timely/late") ? true : undefined;
    });
    const { page, close } = await open(browser, server);
    await page.goto(server.url);
    const freshness = page.getByRole("region", { name: "Freshness" });
    await freshness.getByRole("listitem").nth(1).waitFor();
    expect(await freshness.getByRole("listitem").allInnerTexts()).toEqual([expect.stringMatching(/timely\.late[^]*late for/), expect.stringMatching(/timely\.fresh[^]*late in 6 d/)]);
    const item = page.getByRole("region", { name: "Needs attention" }).locator("li", { hasText: "timely.late" });
    await item.getByText(/late: older than its freshness allows/).waitFor();
    await item.getByRole("button", { name: "Materialize…" }).click();
    await page.getByRole("button", { name: "Materialize timely.late" }).waitFor();
    await close();
  });

  test("data that a check blocked is approved and counts", async () => {
    // What an earlier try of this left.
    const { items } = (await server.ask("quarantine")) as { items: { materialization_id: string }[] };
    for (const item of items) await server.ask(`quarantine/held/short/${item.materialization_id}/reject`, {});
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

  test("partitions that are brushed in the heat map go to a backfill", async () => {
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/assets/raw/readings`);
    const cells = page.locator("rect.cell");
    await cells.nth(30).waitFor();
    await cells.nth(20).hover();
    await page.mouse.down();
    await cells.nth(25).hover();
    await page.mouse.up();
    await page.getByRole("button", { name: "Materialize 6 partitions…" }).waitFor();
    await page.getByRole("button", { name: "Backfill…" }).click();
    await page.getByRole("button", { name: "Backfill 6 partitions" }).click();
    await page.getByRole("heading", { name: /raw\.readings/ }).waitFor();
    await page.locator(".figure", { hasText: "made" }).getByText("6", { exact: true }).waitFor();
    await page.getByText("Succeeded").first().waitFor();
    expect(await page.locator('rect[data-state="made"] title').allTextContents()).toContainEqual(expect.stringContaining("2026-01-21: made"));
    await close();
  });

  test("partitions that are chosen with the keys go to a backfill", async () => {
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/assets/raw/readings`);
    await page.locator("rect.cell").nth(30).waitFor();
    await page.getByRole("group", { name: /^Heat map/ }).focus();
    for (let step = 0; step < 10; step++) await page.keyboard.press("ArrowRight");
    for (let step = 0; step < 4; step++) await page.keyboard.press("Shift+ArrowRight");
    await page.getByRole("button", { name: "Materialize 5 partitions…" }).waitFor();
    await page.getByRole("button", { name: "Backfill…" }).click();
    await page.getByRole("button", { name: "Backfill 5 partitions" }).click();
    await page.getByRole("heading", { name: /raw\.readings/ }).waitFor();
    await page.getByText("Succeeded").first().waitFor();
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

  test("a backfill is made from the dialog, paused, resumed and followed to its end", async () => {
    server.hold("open");
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/backfills`);
    await page.getByRole("button", { name: "New backfill…" }).click();
    await page.getByRole("textbox", { name: "Assets" }).fill("slow.gated");
    await page.getByRole("radio", { name: "These" }).check();
    await page.getByLabel("Keys and ranges of partitions").fill("2026-01-01..2026-01-30");
    await page.getByRole("button", { name: "Backfill 30 partitions" }).click();
    await page.getByRole("heading", { name: /slow\.gated/ }).waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText("Paused", { exact: true }).first().waitFor();
    // As many as there are slots are at work; the others of their chunks wait, and nothing is made.
    const map = page.getByRole("list", { name: "Map of chunks" });
    await map.locator('rect[data-state="running"]').first().waitFor();
    await map.locator('rect[data-state="waiting"]').first().waitFor();
    expect(await map.locator('rect[data-state="made"]').count()).toBe(0);
    expect(await map.locator('rect[data-state="running"] title').first().textContent()).toMatch(/^slow\.gated\[2026-01-\d\d\]: running/);
    server.release("open");
    await page.getByRole("button", { name: "Resume" }).click();
    await page.locator(".figure", { hasText: "made" }).getByText("30", { exact: true }).waitFor();
    await page.getByText("Succeeded").first().waitFor();
    await page.getByRole("link", { name: "Backfills", exact: true }).click();
    await page.getByText("30 of 30").waitFor();
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
    await page.getByRole("region", { name: "What it would run" }).getByText("clean.tidy").waitFor();
    await page.getByRole("button", { name: "Tick now: 1 task" }).click();
    await page.getByText("by hand").waitFor();
    await page.getByText("Triggered").first().waitFor();
    await close();
  });

  test("a dry run of a sensor shows what would happen, and nothing does", async () => {
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/automation?kind=sensor`);
    const row = page.getByRole("row", { name: /inbox/ });
    await row.getByText("Paused", { exact: true }).waitFor();
    await row.getByRole("link", { name: "inbox" }).click();
    await page.getByRole("button", { name: "Dry run…" }).click();
    await page.getByRole("button", { name: "Dry run", exact: true }).click();
    const seen = page.getByRole("region", { name: "What would happen" });
    await seen.getByText("Would ask for 2 runs").waitFor();
    await seen.getByText("2026-01-06").waitFor();
    await seen.getByText("looked at the inbox").waitFor();
    await seen.getByText("none → 2026-01-07").waitFor();
    await page.getByLabel("Cursor, if another than its own").fill("2026-01-07");
    await page.getByRole("button", { name: "Dry run", exact: true }).click();
    await seen.getByText("nothing new since 2026-01-07").waitFor();
    expect(await page.getByRole("button", { name: "Evaluate for real" }).isDisabled()).toBe(true);
    const { cursor } = await server.ask("orchestration/sensors/inbox");
    expect(cursor).toBeUndefined();
    expect((await server.ask("orchestration/sensors/inbox/evals"))["items"]).toEqual([]);
    await close();
  });

  test("a message that is sent to a sensor asks for a run, and its cursor is reset", async () => {
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/automation/sensors/orders`);
    await page.getByRole("button", { name: "Send a message…" }).click();
    await page.getByLabel("Data, as JSON").fill('{"order": ');
    await page.getByText("This is no JSON").waitFor();
    expect(await page.getByRole("button", { name: "Send the message" }).isDisabled()).toBe(true);
    await page.getByLabel("Data, as JSON").fill('{"order": 7}');
    await page.getByRole("button", { name: "Send the message" }).click();
    const history = page.getByRole("region", { name: "Evaluations" });
    await history.locator(".state", { hasText: "Triggered" }).first().waitFor();
    await history.getByRole("link", { name: /^run_/ }).waitFor();
    await page.goto(`${server.url}/automation/sensors/inbox`);
    await page.getByRole("button", { name: "Reset…" }).click();
    await page.getByLabel("Cursor; empty begins anew").fill("2026-01-05");
    await page.getByRole("button", { name: "Set the cursor" }).click();
    await page.getByRole("region", { name: "Cursor" }).getByText("2026-01-05").waitFor();
    await close();
  });

  test("a query is run, drawn, linked to, stopped and refused", async () => {
    await server.materialize({ selection: "raw.source" });
    const { page, close, wrongs } = await open(browser, server);
    await page.goto(`${server.url}/sql`);
    await page.getByLabel("Query").fill("select state, count(*) as runs from runs group by all order by runs desc");
    await page.keyboard.press("Control+Enter");
    const result = page.getByRole("region", { name: "Result" });
    await result.getByRole("cell", { name: "SUCCEEDED" }).waitFor();
    await result.getByRole("button", { name: "Chart" }).click();
    await result.getByRole("img", { name: /^runs by state/ }).waitFor();
    expect(page.url()).toContain("q=select");
    const other = await page.context().newPage();
    await other.goto(page.url());
    await other.getByRole("img", { name: /^runs by state/ }).waitFor();
    await other.close();
    await page.getByLabel("Query").fill("select 'of an asset' as origin, * from raw.source");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await result.getByRole("button", { name: "Table" }).click();
    await result.getByRole("cell", { name: "of an asset" }).first().waitFor();
    await page.getByLabel("Query").fill("select sum(a * b) from range(1000000000) t(a), range(1000) u(b)");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("The query was stopped").waitFor();
    await page.getByLabel("Query").fill("copy (select 1) to 'x.csv'");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByText("it is no query but COPY").waitFor();
    await page.getByRole("region", { name: "History" }).getByText("select 'of an asset'").waitFor();
    // The browser tells of the refusal that this is about.
    wrongs.splice(0, wrongs.length, ...wrongs.filter((each) => !each.includes("400")));
    await close();
  });

  test("a setting is changed and dispatching is paused and resumed", async () => {
    // Another one every time: what is the value already cannot be changed to.
    const value = String(900 + (Date.now() % 90));
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/settings/settings`);
    await page.getByRole("button", { name: "Change recent_runs" }).click();
    await page.getByLabel(/Value, from/).fill(value);
    await page.getByRole("button", { name: `Change to ${value}` }).click();
    await page.getByRole("row", { name: new RegExp(`recent_runs ${value}`) }).waitFor();
    await page.goto(`${server.url}/settings`);
    await page.getByRole("button", { name: "Pause…" }).click();
    await page.getByRole("button", { name: "Pause everything" }).click();
    await health(page, "paused").waitFor();
    await page.getByRole("button", { name: "Resume everything" }).click();
    await health(page, "healthy").waitFor();
    await close();
  });

  test("a server that is killed in the middle of a run is waited for, and nothing is lost", async () => {
    server.hold("finish");
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

  test("of a loud log the newest lines stay in the page, and the others are a press away", async () => {
    server.hold("quiet");
    const { run_id: run } = await server.ask("runs", { selection: "slow.loud" });
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/runs/${String(run)}`);
    const log = page.getByRole("log");
    await log.getByText("number 11999", { exact: true }).waitFor();
    await page.getByText("5,000 lines, 7,000 earlier").waitFor();
    expect(await log.locator(".log-line").count()).toBeLessThan(80);
    // What is read stays where it is while more is written below it.
    await log.evaluate((box) => { box.scrollTop = 4000; });
    await log.getByText("number 7222", { exact: true }).waitFor();
    server.release("quiet");
    await page.getByText("1 new line below what you read").waitFor();
    await log.getByText("number 7222", { exact: true }).waitFor();
    await runState(page, "Succeeded").waitFor();
    await page.getByRole("button", { name: "From the start" }).click();
    await log.getByText("number 0", { exact: true }).waitFor();
    await page.getByText("1,000 lines", { exact: true }).waitFor();
    await log.evaluate((box) => { box.scrollTop = box.scrollHeight; });
    await page.getByText("2,000 lines", { exact: true }).waitFor();
    await page.getByRole("button", { name: "To the end" }).click();
    await page.getByText("5,000 lines, 7,001 earlier").waitFor();
    await log.getByText("the last line", { exact: true }).waitFor();
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download" }).click();
    const text = readFileSync(await (await saved).path(), "utf8");
    expect(text.trimEnd().split("\n").length).toBe(12_001);
    await close();
  });

  test("what a deployment changed is shown, and it is rolled back", async () => {
    const own = await Server.start({ pipeline: "import servo\n\n\n@servo.asset(namespace='raw', group='first')\ndef numbers() -> int:\n    return 1\n" });
    try {
      own.write("pipeline.py", "import servo\n\n\n@servo.asset(namespace='raw', group='second', tags={'team': 'data'})\ndef numbers() -> int:\n    return 1\n\n\n@servo.asset(namespace='raw')\ndef more() -> int:\n    return 2\n");
      await until("the second is deployed", async () => ((await own.ask("deployments/current"))["number"] === 2 ? true : undefined));
      const { page, close } = await open(browser, own);
      await page.goto(`${own.url}/settings/deployments`);
      await page.getByRole("row", { name: /#2/ }).getByRole("link", { name: "What changed" }).click();
      const differs = page.getByRole("region", { name: "What differs" });
      await differs.getByText("1 added, 1 changed").waitFor();
      await differs.getByText("second").waitFor();
      await page.goto(`${own.url}/assets/raw/numbers?tab=definition`);
      await page.getByRole("region", { name: "Versions" }).getByText("tags").first().waitFor();
      await page.goto(`${own.url}/settings/deployments`);
      await page.getByRole("button", { name: "Roll back to deployment 1" }).click();
      const dialog = page.getByRole("dialog", { name: "Roll back to deployment #1" });
      await dialog.getByText("1 changed, 1 removed").waitFor();
      await dialog.getByText("The code is not changed by it").waitFor();
      await dialog.getByRole("button", { name: "Roll back to #1" }).click();
      await page.getByRole("row", { name: /#3/ }).getByText("as #1").waitFor();
      const { group } = (await own.ask("assets/raw/numbers")) as { group: string };
      expect(group).toBe("first");
      await close();
    } finally {
      await own.stop();
    }
  });

  test("a browser whose session is over is told how to come back, and comes back to the same page", async () => {
    const { page, wrongs, close } = await open(browser, server);
    await page.goto(`${server.url}/assets/clean/tidy?tab=definition`);
    await page.getByText("As declared").waitFor();
    await page.context().clearCookies();
    await page.keyboard.press("g");
    await page.keyboard.press("r");
    await page.getByText("This browser is not signed in").waitFor();
    const other = await page.context().newPage();
    await other.goto(await server.entrance("/runs"));
    await other.getByRole("heading", { name: "Runs" }).waitFor();
    await page.getByRole("heading", { name: "Runs" }).waitFor();
    // The refusals are what this is about.
    const rest = wrongs.filter((each) => !each.includes("401"));
    wrongs.length = 0;
    wrongs.push(...rest);
    await close();
  });

  test("whoever shows a key signs in and comes back to the same page", async () => {
    const { page, wrongs, close } = await open(browser, server);
    await page.context().clearCookies();
    await page.goto(`${server.url}/assets/clean/tidy?tab=definition`);
    await page.getByLabel("API key").fill("wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("The server does not know this key.").waitFor();
    await page.getByLabel("API key").fill(server.token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("As declared").waitFor();
    expect(page.url()).toContain("/assets/clean/tidy?tab=definition");
    wrongs.splice(0, wrongs.length, ...wrongs.filter((each) => !each.includes("401")));
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
      ["run-events", `/runs/${failed}?tab=events`],
      ["run-plan", `/runs/${failed}?tab=plan`],
      ["backfills", "/backfills"],
      ["automation", "/automation"],
      ["schedule", "/automation/schedules/nightly"],
      ["sensor", "/automation/sensors/orders"],
      ["sql", `/sql?q=${encodeURIComponent("select run_key, state, created_at from runs order by created_at desc")}`],
      ["sql-chart", `/sql?view=chart&q=${encodeURIComponent("select state, count(*) as runs from runs group by all")}`],
      ["sql-broken", `/sql?q=${encodeURIComponent("selec 1")}`],
      ["notifications", "/settings/notifications"],
      ["asset-automation", "/assets/clean/tidy?tab=automation"],
      ["deployments", "/settings/deployments"],
      ["deployment", "/settings/deployments/1"],
      ["quarantine", "/quarantine"],
      ["settings", "/settings"],
      ["workers", "/settings/workers"],
      ["settings-all", "/settings/settings"],
      ["people-dev", "/settings/people"],
      ["audit", "/settings/audit"],
      ["unknown-asset", "/assets/raw/nothing"],
      ["unknown-page", "/nowhere"],
    ];
    // Addresses of what is not there are answered with 404, and the browser says so.
    await look(browser, server, { pages, expected: ["404", "400"] });
  }, 240_000);

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
