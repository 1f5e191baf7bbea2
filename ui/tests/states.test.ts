// Pages that have nothing to show, and pages whose server does not answer: they teach, and never go blank.
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, test } from "vitest";
import { launch, open } from "./support/browser";
import { look } from "./support/looks";
import { Server, whyNot } from "./support/server";

const EMPTY = "import servo\n\n\n@servo.asset(namespace='raw')\ndef numbers() -> int:\n    return 1\n";
const PAGES = [
  ["home", "/"],
  ["assets", "/assets?view=list"],
  ["graph", "/assets"],
  ["asset", "/assets/raw/numbers"],
  ["asset-checks", "/assets/raw/numbers?tab=checks"],
  ["asset-automation", "/assets/raw/numbers?tab=automation"],
  ["runs", "/runs"],
  ["backfills", "/backfills"],
  ["automation", "/automation"],
  ["quarantine", "/quarantine"],
  ["sql", "/sql"],
  ["notifications", "/settings/notifications"],
  ["workers", "/settings/workers"],
  ["audit", "/settings/audit"],
] as const;

/** Lets the frame be answered, and nothing that a page is about. */
async function breakPanels(page: Page): Promise<void> {
  const problem = { type: "urn:servo:problem:internal", title: "Something went wrong in the server", status: 500, code: "internal", detail: "the disk that has the tables does not answer" };
  await page.route(/\/api\/v1\/(?!me|changes|login-options|readyz|version|admission)/, (route) => route.fulfill({ status: 500, contentType: "application/problem+json", body: JSON.stringify(problem) }));
}

describe.skipIf(whyNot() !== undefined)("pages without anything to show", () => {
  let browser: Browser;
  let server: Server;

  beforeAll(async () => {
    browser = await launch();
    server = await Server.start({ pipeline: EMPTY });
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });

  test("empty pages say what they will show and how to fill them, and fit", async () => {
    await look(browser, server, { pages: PAGES.map(([name, path]) => [`empty-${name}`, path] as const), expected: ["404"] });
    const { page, close } = await open(browser, server);
    for (const [path, text] of [
      ["/runs", "servo materialize"],
      ["/backfills", "servo backfill"],
      ["/automation", "servo.schedule"],
      ["/quarantine", "quarantine=True"],
      ["/settings/notifications", "servo.notif"],
      ["/assets/raw/numbers?tab=checks", "servo.row_count"],
    ] as const) {
      await page.goto(server.url + path);
      await page.locator(".empty pre").filter({ hasText: text }).first().waitFor();
    }
    await close();
  }, 240_000);

  test("a server that fails is quoted by every panel, which can be tried again, and the frame stays", async () => {
    await look(browser, server, { pages: PAGES.map(([name, path]) => [`broken-${name}`, path] as const), expected: ["500"], prepare: breakPanels });
    const { page, wrongs, close } = await open(browser, server);
    await breakPanels(page);
    for (const [name, path] of PAGES) {
      if (name === "sql") continue;
      await page.goto(server.url + path);
      await page.getByText("the disk that has the tables does not answer").first().waitFor();
      await page.getByRole("link", { name: "Runs", exact: true }).waitFor();
      await page.getByRole("alert").first().waitFor();
    }
    await page.goto(`${server.url}/runs`);
    const again = page.getByRole("button", { name: "Try again" }).first();
    await again.waitFor();
    await page.unrouteAll();
    await again.click();
    await page.getByText("No runs yet").waitFor();
    wrongs.splice(0, wrongs.length, ...wrongs.filter((each) => !each.includes("500")));
    await close();
  }, 240_000);
});
