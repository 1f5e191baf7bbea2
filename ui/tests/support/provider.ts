// The identity provider of the tests of servo-oidc: a real one, in a process of its own.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { resolve } from "node:path";

const directory = resolve(import.meta.dirname, "../../../crates/servo-oidc/tests/provider");

/** Why there is no provider here; none if there is. */
export const lacksProvider = () => (existsSync(resolve(directory, "node_modules/oidc-provider")) ? undefined : "the packages of the test provider are not installed (make setup)");

export interface IdentityProvider {
  issuer: string;
  stop: () => void;
}

/** Starts one that sends browsers back to a server; everybody who comes is let in as alice, who is an admin. */
export async function startProvider(port: number, callback: string): Promise<IdentityProvider> {
  const child = spawn(process.execPath, ["provider.mjs", String(port), callback], { cwd: directory, stdio: ["ignore", "pipe", "inherit"] });
  const issuer = await new Promise<string>((done, failed) => {
    child.stdout.once("data", (text: Buffer) => {
      done(text.toString().trim());
    });
    child.once("exit", (code) => {
      failed(new Error(`the provider ended with ${String(code)}`));
    });
  });
  return { issuer, stop: () => child.kill("SIGKILL") };
}
