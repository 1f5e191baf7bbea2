// Chromium as people have it, without anything that it would do on its own; every page is held to a few rules.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium as playwright, type Browser, type BrowserContextOptions, type Page } from "playwright-core";
import { expect } from "vitest";
import { chromium, type Server } from "./server";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function launch(): Promise<Browser> {
  const executablePath = chromium();
  if (executablePath === undefined) throw new Error("there is no chromium");
  return playwright.launch({ executablePath, headless: true, args: FLAGS });
}

export interface Watched {
  page: Page;
  /** Errors of the console, exceptions, and requests to elsewhere. */
  wrongs: string[];
  /** Bytes and number of answers since the start. */
  traffic: { requests: number; bytes: number };
  close: () => Promise<void>;
}

/**
 * A page of its own, with everything that goes wrong in it. It is let in as the owner of the server, or with a key;
 * requests to `elsewhere`, an identity provider, are no wrong.
 */
export async function open(browser: Browser, server: Server, options: BrowserContextOptions & { key?: string; elsewhere?: string } = {}): Promise<Watched> {
  const { url } = server;
  const { key, elsewhere, ...rest } = options;
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...rest });
  const page = await context.newPage();
  const wrongs: string[] = [];
  const traffic = { requests: 0, bytes: 0 };
  page.on("console", (message) => {
    // A server that is down is told by the page itself.
    if (message.type() === "error" && !/ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE/.test(message.text())) wrongs.push(message.text());
  });
  page.on("pageerror", (error) => wrongs.push(error.message));
  page.on("request", (request) => {
    if (elsewhere !== undefined && request.url().startsWith(elsewhere)) return;
    if (!request.url().startsWith(url) && !request.url().startsWith("data:") && !request.url().startsWith("blob:")) wrongs.push(`asked ${request.url()}`);
  });
  page.on("response", (response) => {
    traffic.requests++;
    void response.body().then(
      (body) => (traffic.bytes += body.length),
      () => undefined,
    );
  });
  page.setDefaultTimeout(30_000);
  await page.goto(await server.entrance("/icon.svg", key));
  return {
    page,
    wrongs,
    traffic,
    close: async () => {
      await context.close();
      expect(wrongs).toEqual([]);
    },
  };
}

/** Violations of accessibility that are serious or worse, in words. */
export async function violations(page: Page): Promise<string[]> {
  // Evaluated by the debugger, so that the policy of the page stays as it is.
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { axe: run } = globalThis as unknown as { axe: { run: (options: unknown) => Promise<{ violations: { id: string; impact: string; nodes: { target: string[]; failureSummary: string }[] }[] }> } };
    return (await run.run({ resultTypes: ["violations"] })).violations;
  });
  return found.filter((each) => each.impact === "serious" || each.impact === "critical").flatMap((each) => each.nodes.slice(0, 3).map((node) => `${each.id} ${node.target.join(" ")}: ${node.failureSummary}`));
}
