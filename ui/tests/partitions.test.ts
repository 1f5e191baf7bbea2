// Journeys over partitions and data in a real browser: chosen, made in chunks, looked at.
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { launch, open, violations } from "./support/browser";
import { look } from "./support/looks";
import { Server, until, whyNot } from "./support/server";

const PROJECT = `
import time
from pathlib import Path

import servo

HERE = Path(__file__).parent
days = servo.DailyPartitions(start="2026-01-01", end="2026-01-31")
both = servo.MultiPartitions({"date": days, "region": servo.StaticPartitions(["eu", "us"])})
PIXEL = b"\\x89PNG\\r\\n\\x1a\\n" + bytes.fromhex("0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6364f8cf500f00030e018005a4ed9f0000000049454e44ae426082")


@servo.asset(namespace="raw", group="ingest", partitions=days, retry=servo.Retry(max_attempts=1))
def days_made(ctx: servo.Context) -> list[dict[str, object]]:
    """One day cannot be made."""
    if str(ctx.partition) == "2026-01-04":
        raise ValueError("no data on the fourth")
    ctx.metadata(day=str(ctx.partition))
    return [{"day": str(ctx.partition), "delay": 3}]


@servo.asset(namespace="raw", group="ingest", partitions=both)
def regions() -> int:
    """By day and region."""
    return 1


class Options(servo.Config):
    """How to report."""

    factor: int = 2


@servo.asset(namespace="out", group="reports", freshness=servo.Freshness(deadline="0 9 * * *", timezone="Europe/Amsterdam"))
def report(ctx: servo.Context, config: Options) -> list[dict[str, object]]:
    """With everything that can be attached."""
    print("\\x1b[31mred\\x1b[0m and \\x1b[1;36mcyan\\x1b[0m")
    ctx.metadata(
        notes=servo.md("## Delays\\n\\n**3** flights were late: <script>document.title='hacked'</script>\\n\\n- AA\\n- UA\\n\\nSee [the report](https://example.org/report)."),
        worst=servo.table([{"carrier": "AA", "delay": 41}, {"carrier": "UA", "delay": None}]),
        source=servo.url("https://example.org/data", "where it comes from"),
        bad=servo.url("javascript:document.title='hacked'", "no link"),
        plot=servo.plot(PIXEL),
        limits={"least": 1, "most": [2, 3]},
        factor=config.factor,
    )
    return [{"carrier": "AA", "delay": 41.5}, {"carrier": "UA", "delay": None}, {"carrier": "<b>DL</b>", "delay": 7.0}]


@servo.asset(namespace="out", group="reports")
def held() -> int:
    """Waits for a file before it is made."""
    while not (HERE / "go").exists():
        time.sleep(0.05)
    return 1


@servo.schedule(name="decides", cron="0 5 * * *", enabled=False)
def decides(ctx: servo.ScheduleContext):
    """Decides when it is called."""
    return servo.SkipReason("nothing to do")


servo.schedule(name="morning", cron="0 6 * * *", selection="raw.days_made", enabled=False)
`;

const dialog = (page: Page) => page.getByRole("dialog", { name: "Materialize" });

describe.skipIf(whyNot() !== undefined)("partitions and data", () => {
  let browser: Browser;
  let server: Server;

  beforeAll(async () => {
    browser = await launch();
    server = await Server.start({ pipeline: PROJECT });
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });

  test("a range is pressed in the calendar, and a backfill of it shows its one failed day among those that were made", async () => {
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/assets/raw/days_made`);
    await page.getByRole("button", { name: "Materialize…" }).click();
    await dialog(page).getByRole("radio", { name: "These" }).check();
    const calendar = dialog(page).getByRole("table", { name: "Days" });
    await calendar.getByRole("button", { name: "January 1, 2026" }).click();
    await calendar.getByRole("button", { name: "January 20, 2026" }).click();
    expect(await dialog(page).getByLabel("Keys and ranges of partitions").inputValue()).toBe("2026-01-01..2026-01-20");
    await dialog(page).getByLabel(/As a backfill/).check();
    await dialog(page).getByLabel("Partitions in a chunk").fill("10");
    await dialog(page).getByLabel("Runs at once").fill("1");
    await dialog(page).getByLabel("Labels, name=value").fill("reason=late data");
    await dialog(page).getByText("20 partitions in 2 chunks").waitFor();
    await dialog(page).getByTestId("estimate").getByText(/not known/).waitFor();
    expect(await violations(page)).toEqual([]);
    await dialog(page).getByRole("button", { name: "Backfill 20 partitions" }).click();
    const map = page.getByRole("list", { name: "Map of chunks" });
    await page.locator(".figure", { hasText: "failed" }).getByText("1", { exact: true }).waitFor();
    await map.locator('rect[data-state="failed"]').waitFor();
    await until("everything has a state", async () => ((await map.locator('rect[data-state="made"]').count()) === 19 ? true : undefined));
    expect(await map.locator("rect.cell").count()).toBe(20);
    expect(await map.locator('rect[data-state="failed"] title').textContent()).toContain("2026-01-04: failed");
    const { items } = (await server.ask("runs?source=backfill")) as { items: { labels: Record<string, string> }[] };
    expect(items[0]?.labels).toMatchObject({ reason: "late data" });
    await page.getByLabel("State of chunks").selectOption("FAILED");
    await until("only the failed chunk is shown", async () => ((await map.locator("rect.cell").count()) === 10 ? true : undefined));
    await close();
  });

  test("what failed and what was never made is one press, and of several dimensions values are chosen", async () => {
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/assets/raw/days_made`);
    await page.getByRole("button", { name: "Materialize…" }).click();
    await dialog(page).getByRole("radio", { name: /Failed/ }).check();
    await dialog(page).getByRole("button", { name: "Materialize raw.days_made" }).waitFor();
    await dialog(page).getByRole("radio", { name: /Never made/ }).check();
    await dialog(page).getByRole("button", { name: /Materialize 1[12] partitions/ }).waitFor();
    await dialog(page).getByLabel("Assets").fill("raw.regions");
    await dialog(page).getByRole("radio", { name: "These" }).check();
    await dialog(page).getByRole("checkbox", { name: "eu" }).check();
    await dialog(page).getByLabel("From").fill("2026-01-02");
    await dialog(page).getByLabel("To", { exact: true }).fill("2026-01-04");
    expect(await dialog(page).getByLabel("Keys and ranges of partitions").inputValue()).toBe("date=2026-01-02,region=eu..date=2026-01-04,region=eu");
    await dialog(page).getByRole("button", { name: "Materialize 3 partitions" }).waitFor();
    await dialog(page).getByLabel("Assets").fill("out.report");
    await dialog(page).getByRole("button", { name: "Materialize out.report" }).waitFor();
    expect(await dialog(page).getByRole("radio").count()).toBe(0);
    await close();
  });

  test("metadata and first rows are shown as what they are, and nothing of them is run", async () => {
    const run = await server.materialize({ selection: "out.report" });
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/assets/out/report?tab=data`);
    const metadata = page.getByRole("region", { name: "Metadata" });
    await metadata.getByRole("heading", { name: "Delays" }).waitFor();
    expect(await metadata.getByRole("link").filter({ hasText: /./ }).allInnerTexts()).toEqual(["the report", "where it comes from"]);
    await metadata.getByText("<script>document.title").waitFor();
    const picture = metadata.getByRole("img", { name: "plot" });
    await until("the picture is drawn", async () => ((await picture.evaluate((image) => (image instanceof HTMLImageElement ? image.naturalWidth : 0))) === 1 ? true : undefined));
    expect(await picture.getAttribute("src")).toMatch(/\/files\/_plot-plot\.png$/);
    await metadata.getByRole("cell", { name: "null" }).waitFor();
    const data = page.getByRole("region", { name: "Data" });
    await data.getByRole("columnheader", { name: /delay.*1 null, 33 %/ }).waitFor();
    await data.getByRole("cell", { name: "<b>DL</b>" }).waitFor();
    await page.getByText("due by 0 9 * * * Europe/Amsterdam").waitFor();
    const { items } = (await server.ask(`runs/${run}/tasks`)) as { items: { task_id: string }[] };
    await page.goto(`${server.url}/runs/${run}?task=${items[0]?.task_id ?? ""}&tab=task`);
    await page.getByRole("heading", { name: "Delays" }).waitFor();
    await page.getByRole("img", { name: "plot" }).waitFor();
    await page.goto(`${server.url}/runs/${run}?task=${items[0]?.task_id ?? ""}`);
    const log = page.getByRole("log");
    await log.locator(".ansi-red", { hasText: "red" }).waitFor();
    await log.locator(".ansi-cyan.ansi-bold", { hasText: "cyan" }).waitFor();
    expect(await page.title()).not.toContain("hacked");
    await close();
  });

  test("a run is asked for again with its configuration and labels", async () => {
    const { run_id: run } = await server.ask("runs", { selection: "out.report", config: { "out.report:factor": 7 }, labels: { team: "ops" } });
    await until("it has ended", async () => ((await server.ask(`runs/${String(run)}`))["state"] === "SUCCEEDED" ? true : undefined));
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/runs/${String(run)}`);
    await page.getByRole("button", { name: "Re-run…" }).click();
    await until("the form has it", async () => ((await dialog(page).getByLabel(/out\.report:factor/).inputValue()) === "7" ? true : undefined));
    const waited = page.waitForRequest((request) => request.url().includes("wait_for_event_id="));
    await dialog(page).getByRole("button", { name: "Materialize out.report" }).click();
    await waited;
    const again = await until("it is asked for again", async () => {
      const { items } = (await server.ask("runs?asset=out.report")) as { items: { run_id: string; config: unknown; labels: unknown }[] };
      return items[0]?.run_id === run ? undefined : items[0];
    });
    expect([again.config, again.labels]).toEqual([{ "out.report:factor": 7 }, { team: "ops" }]);
    await close();
  });

  test("a tick is shown before it is made, and of a function what is known", async () => {
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/automation/schedules/morning`);
    await page.getByRole("button", { name: "Tick now…" }).click();
    const would = page.getByRole("region", { name: "What it would run" });
    await would.getByText("2026-01-31").waitFor();
    await would.getByText("raw.days_made").waitFor();
    await page.getByRole("button", { name: "Tick now: 1 task" }).waitFor();
    await page.getByLabel(/Partitions instead/).fill("2026-01-02..2026-01-03");
    await page.getByRole("button", { name: "Tick now: 2 tasks" }).waitFor();
    await page.goto(`${server.url}/automation/schedules/decides`);
    await page.getByRole("button", { name: "Tick now…" }).click();
    await would.getByText("the function decides when it is called").waitFor();
    await would.getByText("It has not been called yet.").waitFor();
    await close();
  });

  test("the palette finds partitions of the asset that is named", async () => {
    const { page, close } = await open(browser, server);
    await page.goto(server.url);
    await page.getByRole("heading", { name: "Home" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.keyboard.type("raw.days_made 2026-01-2");
    await page.getByRole("option", { name: "raw.days_made[2026-01-29]" }).waitFor();
    expect(await page.getByRole("option", { name: /raw\.days_made\[/ }).count()).toBe(8);
    await page.keyboard.type("0");
    await page.getByRole("option", { name: "raw.days_made[2026-01-20] materialized" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("region", { name: "Data" }).getByRole("cell", { name: "2026-01-20" }).waitFor();
    await close();
  });

  test("assets are grouped and filtered by state, and a row that changes flashes once", async () => {
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/assets?view=list&sort=group`);
    const list = page.getByRole("list", { name: "Assets" });
    await list.getByText("2 assets shown").first().waitFor();
    expect((await list.getByRole("listitem").allInnerTexts()).map((text) => text.split(/\s/)[0])).toEqual(["ingest", "raw.days_made", "raw.regions", "reports", "out.held", "out.report"]);
    await page.getByLabel("State").selectOption("missing");
    await page.getByText(/^[12] assets? of 4 that were looked at, which are all/).waitFor();
    await list.getByText("raw.regions").waitFor();
    await page.goto(`${server.url}/runs`);
    await page.getByRole("list", { name: "Runs" }).getByRole("listitem").first().waitFor();
    // The row is there before it changes: its task waits for a file.
    server.hold("go");
    await server.ask("runs", { selection: "out.held" });
    await page.getByRole("list", { name: "Runs" }).getByRole("listitem").first().getByText("Running").waitFor();
    await until("nothing flashes", async () => ((await page.locator(".vrow.flash").count()) === 0 ? true : undefined));
    await page.evaluate(() => {
      new MutationObserver(() => {
        if (document.querySelector(".vrow.flash") !== null) document.body.dataset["flashed"] = "yes";
      }).observe(document.body, { subtree: true, attributes: true, attributeFilter: ["class"], childList: true });
    });
    server.release("go");
    await page.locator('body[data-flashed="yes"]').waitFor();
    await until("it flashes no more", async () => ((await page.locator(".vrow.flash").count()) === 0 ? true : undefined));
    await close();
  });

  test("the last day is by group", async () => {
    const { page, close } = await open(browser, server);
    await page.goto(server.url);
    const strip = page.getByRole("region", { name: "Last 24 hours" });
    await strip.getByText("ingest").waitFor();
    await strip.getByText("reports").waitFor();
    await strip.getByRole("link", { name: /^reports, .*run/ }).first().waitFor();
    await close();
  });

  test("what was added is accessible, fits its width, and looks as it should in both themes", async () => {
    const { items } = (await server.ask("orchestration/backfills")) as { items: { backfill_id: string }[] };
    const { items: runs } = (await server.ask("runs?asset=out.report&state=SUCCEEDED")) as { items: { run_id: string }[] };
    const run = runs[0]?.run_id ?? "";
    const { items: tasks } = (await server.ask(`runs/${run}/tasks`)) as { items: { task_id: string }[] };
    await look(browser, server, {
      pages: [
        ["backfill-map", `/backfills/${items[0]?.backfill_id ?? ""}`],
        ["asset-data", "/assets/out/report?tab=data"],
        ["asset-data-never", "/assets/raw/regions?tab=data"],
        ["task-metadata", `/runs/${run}?task=${tasks[0]?.task_id ?? ""}&tab=task`],
        ["log-colours", `/runs/${run}?task=${tasks[0]?.task_id ?? ""}`],
        ["assets-grouped", "/assets?view=list&sort=group&state=succeeded"],
        ["home-groups", "/"],
      ],
      expected: ["404"],
    });
  }, 240_000);
});
