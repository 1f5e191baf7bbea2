// A real server on a project of its own, with real Python.
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../../..");
export const SERVO = resolve(process.env["SERVO_BIN"] ?? join(root, process.env["CARGO_TARGET_DIR"] ?? "target", "debug/servo"));
export const PYTHON = resolve(process.env["SERVO_PYTHON"] ?? join(root, ".venv/bin/python"));
const PATIENCE_MS = 60_000;

/** Why the journeys cannot be made here; none if they can. */
export function whyNot(): string | undefined {
  if (chromium() === undefined) return "there is no chromium (scripts/setup.sh installs it where it may)";
  if (!existsSync(SERVO)) return `there is no ${SERVO} (cargo build --workspace --bin servo)`;
  if (!existsSync(PYTHON)) return `there is no ${PYTHON} (scripts/setup.sh)`;
  if (!existsSync(join(root, "ui/dist/index.html"))) return "ui/dist is not built (make ui)";
  return undefined;
}

export function chromium(): string | undefined {
  return [process.env["CHROMIUM"], "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => path !== undefined && existsSync(path));
}

export async function freePort(): Promise<number> {
  return new Promise((done, failed) => {
    const server = createServer();
    server.on("error", failed);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => {
        done(typeof address === "object" && address !== null ? address.port : 0);
      });
    });
  });
}

/** The environment without anything that would lead to another server. */
function clean(): NodeJS.ProcessEnv {
  const environment: NodeJS.ProcessEnv = { ...process.env, SERVO_PYTHON: PYTHON, NO_COLOR: "1" };
  for (const name of ["SERVO_DIR", "SERVO_URL", "SERVO_KEY", "SERVO_PROJECT", "SERVO_TENANT", "SERVO_WORKSPACE", "SERVO_OIDC"]) Reflect.deleteProperty(environment, name);
  return environment;
}

/** Asks until a condition holds, and says what it waited for if it does not. */
export async function until<T>(what: string, look: () => Promise<T | undefined> | T | undefined): Promise<T> {
  const end = Date.now() + PATIENCE_MS;
  let last: unknown;
  while (Date.now() < end) {
    try {
      const found = await look();
      if (found !== undefined && found !== false) return found;
    } catch (error) {
      last = error;
    }
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error(`waited in vain until ${what}${last === undefined ? "" : `: ${String(last)}`}`);
}

export class Server {
  readonly directory: string;
  readonly port: number;
  private process: ChildProcess | undefined;
  private output = "";

  /** What is started, after `servo`. */
  private readonly command: string[];
  /** The key that `servo serve` printed at its first start. */
  private key: string | undefined;

  private constructor(directory: string, port: number, command: string[]) {
    this.directory = directory;
    this.port = port;
    this.command = command;
  }

  get url(): string {
    return `http://127.0.0.1:${String(this.port)}`;
  }

  /** A server of a new project: of one that `servo init` writes, or of these modules. */
  static async start(modules: Record<string, string> | "init", options: string[] = [], { tenant, prepare }: { tenant?: string; prepare?: (directory: string) => void } = {}): Promise<Server> {
    const port = await freePort();
    const server = new Server(Server.project(modules), port, [...(tenant === undefined ? [] : ["--tenant", tenant]), "dev", "--port", String(port), ...options]);
    prepare?.(server.directory);
    await server.run();
    return server;
  }

  /** `servo serve`, with keys and roles, and these modules deployed to its first workspace. */
  static async serve(modules: Record<string, string>): Promise<Server> {
    const port = await freePort();
    const server = new Server(Server.project(modules), port, ["serve", "--listen", `127.0.0.1:${String(port)}`, "--slots", "2", "--log-format", "text"]);
    await server.run();
    server.cli(["deploy"]);
    return server;
  }

  private static project(modules: Record<string, string> | "init"): string {
    const directory = mkdtempSync(join(tmpdir(), "servo-ui-"));
    if (modules === "init") {
      const made = spawnSync(SERVO, ["init", "."], { cwd: directory, encoding: "utf8" });
      if (made.status !== 0) throw new Error(made.stderr);
    } else {
      writeFileSync(join(directory, "servo.toml"), `[project]\nname = "journeys"\nmodules = [${Object.keys(modules).map((name) => `"${name}"`).join(", ")}]\n`);
      for (const [name, text] of Object.entries(modules)) writeFileSync(join(directory, `${name}.py`), text);
    }
    return directory;
  }

  /** Runs a command that speaks to this server, and gives what it printed. */
  cli(command: string[]): string {
    const environment = { ...clean(), SERVO_URL: this.url, SERVO_KEY: this.token };
    const made = spawnSync(SERVO, command, { cwd: this.directory, env: environment, encoding: "utf8" });
    if (made.status !== 0) throw new Error(`servo ${command.join(" ")}: ${made.stderr}`);
    return made.stdout;
  }

  /** A new key of a role, as an admin makes one. */
  newKey(role: string, scope: string): string {
    const made = JSON.parse(this.cli(["--json", "admin", "api-keys", "create", `${role} for journeys`, "--role", role, "--scope", scope])) as { key: string };
    return made.key;
  }

  async run(): Promise<void> {
    const child = spawn(SERVO, this.command, { cwd: this.directory, env: clean(), stdio: ["ignore", "pipe", "pipe"] });
    this.process = child;
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (text: Buffer) => (this.output += text.toString()));
    await until(`the server is up:\n${this.output}`, async () => {
      if (child.exitCode !== null) throw new Error(this.output);
      this.key ??= /shown this once: (\S+)/.exec(this.output)?.[1];
      if (this.command[0] === "serve") return this.key !== undefined && (await fetch(`${this.url}/api/v1/readyz`)).ok ? true : undefined;
      return (await fetch(`${this.url}/api/v1/deployments/current`, { headers: this.headers() })).ok ? true : undefined;
    });
  }

  /** What lets its owner in: the first key, or the token that the server wrote for those who can read its files. */
  get token(): string {
    return (this.headers()["authorization"] ?? "").replace("Bearer ", "");
  }

  /** What programs show to be let in. */
  private headers(): Record<string, string> {
    if (this.key !== undefined) return { authorization: `Bearer ${this.key}` };
    const state = join(this.directory, ".servo");
    const name = existsSync(state) ? readdirSync(state, { recursive: true, encoding: "utf8" }).find((each) => each.endsWith("server.json")) : undefined;
    const token = name === undefined ? undefined : (JSON.parse(readFileSync(join(state, name), "utf8")) as { token?: string }).token;
    return token === undefined ? {} : { authorization: `Bearer ${token}` };
  }

  /** An address that lets a browser in and goes to a page. */
  async entrance(path: string, key?: string): Promise<string> {
    const headers: Record<string, string> = key === undefined ? this.headers() : { authorization: `Bearer ${key}` };
    if (Object.keys(headers).length === 0) return this.url + path;
    const made = await fetch(`${this.url}/api/v1/logins`, { method: "POST", headers });
    const { path: link } = (await made.json()) as { path: string };
    return `${this.url}${link}&next=${encodeURIComponent(path)}`;
  }

  /** Ends the process as a crash would. */
  async kill(): Promise<void> {
    const child = this.process;
    if (child === undefined || child.exitCode !== null) return;
    const gone = new Promise((done) => child.once("exit", done));
    child.kill("SIGKILL");
    await gone;
  }

  async stop(): Promise<void> {
    const child = this.process;
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      const gone = new Promise((done) => child.once("exit", done));
      child.kill("SIGTERM");
      await gone;
    }
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 5 });
  }

  /** Bytes of memory that the process has. */
  rss(): number {
    const status = readFileSync(`/proc/${String(this.process?.pid)}/status`, "utf8");
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? Number.NaN) * 1024;
  }

  /** Writes a file of the project. */
  write(name: string, text: string): void {
    writeFileSync(join(this.directory, name), text);
  }

  /** Has tasks that wait for a file of the project wait, also where a test is tried again. */
  hold(name: string): void {
    rmSync(join(this.directory, name), { force: true });
  }

  /** Lets tasks that wait for a file of the project go on. */
  release(name: string): void {
    writeFileSync(join(this.directory, name), "");
  }

  async ask(path: string, body?: unknown): Promise<Record<string, unknown>> {
    const response = await fetch(`${this.url}/api/v1/${path}`, body === undefined ? { headers: this.headers() } : { method: "POST", headers: { ...this.headers(), "content-type": "application/json" }, body: JSON.stringify(body) });
    const answer = (await response.json()) as Record<string, unknown>;
    if (!response.ok) throw new Error(`${path}: ${JSON.stringify(answer)}`);
    return answer;
  }

  /** Asks for a run and waits until it is in one of the states. */
  async materialize(body: { selection: string; partitions?: unknown }, states = ["SUCCEEDED"]): Promise<string> {
    const { run_id: run } = await this.ask("runs", body);
    const id = String(run);
    await until(`${body.selection} is ${states.join(" or ")}`, async () => {
      const { state } = await this.ask(`runs/${id}`);
      return states.includes(String(state)) ? true : undefined;
    });
    return id;
  }
}
