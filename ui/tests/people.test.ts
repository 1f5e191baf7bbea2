// Who comes in and what they may do there: keys and roles on a real `servo serve`, logins at a real identity provider.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { launch, open, violations } from "./support/browser";
import { look } from "./support/looks";
import { PIPELINE } from "./support/pipeline.py";
import { lacksProvider, startProvider } from "./support/provider";
import { freePort, Server, until, whyNot } from "./support/server";

/** Refusals are what some journeys are about; the browser tells of each. */
const forgive = (wrongs: string[], ...codes: string[]) => {
  wrongs.splice(0, wrongs.length, ...wrongs.filter((each) => !codes.some((code) => each.includes(code))));
};

async function signIn(page: Page, key: string): Promise<void> {
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
}

describe.skipIf(whyNot() !== undefined)("people and keys of servo serve", () => {
  let browser: Browser;
  let server: Server;

  beforeAll(async () => {
    browser = await launch();
    server = await Server.serve({ pipeline: PIPELINE });
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });

  test("an admin creates a key, it is shown once and lets somebody in, and is revoked", async () => {
    const { page, wrongs, close } = await open(browser, server);
    await page.goto(`${server.url}/settings/people`);
    await page.getByRole("region", { name: "You" }).getByText(/^admin in/).waitFor();
    const keys = page.getByRole("region", { name: "API keys" });
    await keys.getByRole("button", { name: "New key…" }).click();
    await page.getByLabel(/^Name/).fill("dashboards");
    await page.getByLabel("Role").selectOption("viewer");
    expect(await page.getByLabel(/^Workspace/).inputValue()).toBe("default/main");
    await page.getByLabel("It expires").selectOption("in 30 days");
    await page.getByRole("button", { name: "Create the key" }).click();
    const shown = page.getByLabel("The new key");
    const key = await shown.inputValue();
    expect(key).toMatch(/^servo_/);
    // A click beside the dialog or Escape does not lose it.
    await page.keyboard.press("Escape");
    await page.mouse.click(4, 4);
    await shown.waitFor();
    await page.getByRole("button", { name: "I have kept it" }).click();
    const row = keys.getByRole("row", { name: /dashboards/ });
    await row.getByText("viewer").waitFor();
    await row.getByText("in 29 d").waitFor();
    expect(await page.content()).not.toContain(key);
    expect(await row.getByText("never").count()).toBe(1);

    const other = await open(browser, server, { key });
    await other.page.goto(`${server.url}/runs`);
    await other.page.getByText("dashboards").waitFor();
    await page.reload();
    await row.getByText("never").waitFor({ state: "detached" });

    await row.getByRole("button", { name: "Revoke dashboards" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke dashboards" }).click();
    await page.getByText("dashboards is revoked").waitFor();
    await row.waitFor({ state: "detached" });
    await keys.getByLabel("Also revoked and expired").check();
    await row.getByText("revoked", { exact: true }).waitFor();
    await other.page.goto(`${server.url}/runs`);
    await other.page.getByText("This browser is not signed in").waitFor();
    forgive(other.wrongs, "401");
    await other.close();
    forgive(wrongs);
    await close();
  });

  test("an admin signs a browser out, which is told so where it is", async () => {
    const key = server.newKey("operator", "default/main");
    const other = await open(browser, server, { key });
    await other.page.goto(`${server.url}/runs`);
    await other.page.getByRole("heading", { name: "Runs" }).waitFor();
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/settings/people`);
    const row = page.getByRole("region", { name: "Signed in" }).getByRole("row", { name: /operator for journeys/ });
    await row.getByText("an API key").waitFor();
    await row.getByRole("button", { name: /^Sign out/ }).click();
    await page.getByRole("button", { name: "End this session" }).click();
    await row.waitFor({ state: "detached" });
    await other.page.keyboard.press("g");
    await other.page.keyboard.press("b");
    await other.page.getByText("This browser is not signed in").waitFor();
    expect(other.page.url()).toBe(`${server.url}/backfills`);
    forgive(other.wrongs, "401");
    await other.close();
    await close();
  });

  test("nobody gives away more than they have, and is told so in the dialog", async () => {
    const { page, wrongs, close } = await open(browser, server, { key: server.newKey("admin", "default/main") });
    await page.goto(`${server.url}/settings/people`);
    await page.getByRole("button", { name: "New key…" }).click();
    await page.getByLabel(/^Name/).fill("too much");
    await page.getByLabel(/^Workspace/).fill("*");
    await page.getByRole("button", { name: "Create the key" }).click();
    await page.getByText(/nobody gives away what they do not have/).waitFor();
    await page.getByLabel(/^Workspace/).fill("default/main");
    await page.getByLabel(/^Assets that it/).fill("raw.*");
    await page.getByRole("button", { name: "Create the key" }).click();
    await page.getByRole("button", { name: "I have kept it" }).click();
    await page.getByRole("row", { name: /too much/ }).getByText("raw.*").waitFor();
    forgive(wrongs, "403");
    await close();
  });

  test("a viewer with a key of their own sees what others may do, why not, and cannot act", async () => {
    const key = server.newKey("viewer", "default/main");
    const { page, wrongs, close } = await open(browser, server);
    await page.context().clearCookies();
    await page.goto(`${server.url}/assets/clean/tidy?tab=definition`);
    await signIn(page, key);
    await page.getByText("As declared").waitFor();
    expect(page.url()).toContain("/assets/clean/tidy?tab=definition");
    forgive(wrongs, "401");
    const places: [string, string][] = [
      ["/", "Materialize…"],
      ["/assets/clean/tidy", "Materialize…"],
      ["/backfills", "New backfill…"],
      ["/automation/schedules/nightly", "Tick now…"],
      ["/automation/sensors/orders", "Dry run…"],
      ["/settings", "Pause…"],
      ["/sql", "Run"],
    ];
    for (const [path, name] of places) {
      await page.goto(server.url + path);
      const button = page.getByRole("button", { name, exact: true }).first();
      await button.waitFor();
      await until(`${name} of ${path} is disabled`, async () => ((await button.isDisabled()) ? true : undefined));
      expect(await button.getAttribute("title"), path).toContain("You have the role viewer here");
    }
    for (const tab of ["people", "audit"]) {
      await page.goto(`${server.url}/settings/${tab}`);
      await page.getByText(/^You may not see this/).waitFor();
      await page.getByText("You have the role viewer here").first().waitFor();
    }
    await page.goto(`${server.url}/automation`);
    await until("the switch is disabled", async () => ((await page.getByRole("switch").first().isDisabled()) ? true : undefined));
    await page.keyboard.press("m");
    await page.getByRole("dialog", { name: "Materialize" }).waitFor();
    await page.keyboard.type("raw.source");
    await page.getByText("1 task").first().waitFor();
    expect(await page.getByRole("button", { name: "Materialize raw.source" }).isDisabled()).toBe(true);
    // Whoever gets around the page is refused by the server, and the audit has it.
    const status = await page.evaluate(async () => (await fetch("/api/v1/runs", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ selection: "raw.source" }) })).status);
    expect(status).toBe(403);
    expect((await server.ask("runs"))["items"]).toEqual([]);
    forgive(wrongs, "403", "401");
    await close();
    const admin = await open(browser, server);
    await admin.page.goto(`${server.url}/settings/audit?outcome=REFUSED`);
    await admin.page.getByRole("group", { name: "Audit" }).getByRole("row", { name: /viewer for journeys/ }).first().waitFor();
    await admin.close();
  });

  test("whoever may open several workspaces goes from one to another, and addresses say which", async () => {
    server.cli(["admin", "workspaces", "create", "default/staging"]);
    const { page, wrongs, close } = await open(browser, server);
    await page.goto(server.url);
    const chosen = page.getByLabel("Workspace");
    await chosen.selectOption("default / staging");
    await page.getByText("Nothing is deployed yet").waitFor();
    expect(page.url()).toBe(`${server.url}/t/default/w/staging/`);
    await page.getByRole("link", { name: "Runs", exact: true }).click();
    await page.getByText("No runs yet").waitFor();
    expect(page.url()).toBe(`${server.url}/t/default/w/staging/runs`);
    await page.getByRole("status").filter({ hasText: "healthy" }).first().waitFor();
    await page.goto(`${server.url}/t/default/w/main/assets/clean/tidy?tab=definition`);
    await page.getByText("As declared").waitFor();
    expect(await chosen.inputValue()).toBe("/t/default/w/main");
    // A run is followed live there, too.
    const { run_id: run } = await server.ask("runs", { selection: "raw.source" });
    await page.goto(`${server.url}/t/default/w/main/runs/${String(run)}`);
    await page.locator(".runbar .state", { hasText: "Succeeded" }).waitFor();
    await page.goto(`${server.url}/t/default/w/nowhere/`);
    await page.getByText("There is no such workspace").waitFor();
    await page.getByRole("link", { name: "default / staging" }).waitFor();
    forgive(wrongs, "404");
    await close();
    // A key that is good for one of them is not asked which.
    const one = await open(browser, server, { key: server.newKey("viewer", "default/staging") });
    await one.page.goto(`${server.url}/settings/people`);
    await one.page.getByText("default/staging").first().waitFor();
    expect(await one.page.getByLabel("Workspace").count()).toBe(0);
    // Nothing is deployed there, which is no error of the page.
    forgive(one.wrongs, "404", "503");
    await one.close();
  });

  test("the audit is filtered by who, what, when and outcome, and the address says so", async () => {
    await server.materialize({ selection: "raw.source" });
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/settings/audit`);
    const audit = page.getByRole("group", { name: "Audit" });
    await audit.getByRole("row", { name: /run\.trigger/ }).first().waitFor();
    await audit.getByRole("row", { name: /assets\.deploy/ }).first().waitFor();
    await page.getByLabel("Action").selectOption("Deployments");
    await audit.getByRole("row", { name: /run\.trigger/ }).first().waitFor({ state: "detached" });
    await audit.getByRole("row", { name: /assets\.deploy/ }).first().waitFor();
    await page.getByLabel("When").selectOption("Last hour");
    await page.getByLabel("Who").fill("nobody");
    await page.getByText("Nobody did anything like that").waitFor();
    await until("the address has the filters", () => (/action=assets.*who=nobody|who=nobody.*action=assets/.test(page.url()) ? true : undefined));
    const other = await page.context().newPage();
    await other.goto(page.url());
    await other.getByText("Nobody did anything like that").waitFor();
    await other.close();
    await close();
  });

  test("people and keys are accessible and fit, in both themes", async () => {
    await look(browser, server, { pages: [["people", "/settings/people?all=1"], ["audit-serve", "/settings/audit"]] });
    const { page, close } = await open(browser, server);
    await page.goto(`${server.url}/settings/people`);
    await page.getByRole("button", { name: "New key…" }).click();
    expect(await violations(page)).toEqual([]);
    await close();
  });
});

const reason = whyNot() ?? lacksProvider();
if (reason !== undefined) process.stderr.write(`logins at an identity provider are skipped: ${reason}\n`);

describe.skipIf(reason !== undefined)("logins at an identity provider", () => {
  test("a browser signs in at the provider, comes back to the same page, and again when its login is over", async () => {
    const browser = await launch();
    const port = await freePort();
    const file = join(mkdtempSync(join(tmpdir(), "servo-ui-oidc-")), "oidc.toml");
    writeFileSync(file, `[oidc]\nissuer = "http://127.0.0.1:${String(port)}"\nclient_id = "servo"\n\n[[oidc.roles]]\ngroup = "admins"\nrole = "operator"\nscope = "*"\n`);
    const server = await Server.start({ pipeline: PIPELINE }, ["--oidc", file]);
    const provider = await startProvider(port, `${server.url}/login/callback`);
    try {
      const { page, wrongs, close } = await open(browser, server, { elsewhere: provider.issuer });
      await page.context().clearCookies();
      await page.goto(`${server.url}/assets/clean/tidy?tab=definition`);
      const enter = page.getByRole("link", { name: `Sign in at 127.0.0.1:${String(port)}` });
      await enter.click();
      await page.getByText("As declared").waitFor();
      expect(page.url()).toBe(`${server.url}/assets/clean/tidy?tab=definition`);
      await page.getByText("alice@example.org (operator)").waitFor();
      // The login is over: the page says so where it is, and the way back leads to the same place.
      await page.context().clearCookies({ domain: "127.0.0.1", name: /^servo_session/ });
      await page.keyboard.press("g");
      await page.keyboard.press("r");
      await enter.click();
      await page.getByRole("heading", { name: "Runs" }).waitFor();
      expect(page.url()).toBe(`${server.url}/runs`);
      // Signing out ends it.
      await page.goto(`${server.url}/settings/people`);
      await page.getByText(`at ${provider.issuer}`).waitFor();
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByText("This browser is not signed in").waitFor();
      forgive(wrongs, "401");
      await close();
    } finally {
      provider.stop();
      await server.stop();
      await browser.close();
    }
  });
});
