// The workspace that the pages are about: the one that the address names, or else the one that the server means.
const named = typeof location === "undefined" ? null : /^\/t\/([^/]+)\/w\/([^/]+)(?=\/|$)/.exec(location.pathname);

/** How addresses of pages begin; empty where they name no workspace. */
export const base = named?.[0] ?? "";

/** Where the pages of a workspace are. */
export const baseOf = (tenant: string, workspace: string) => `/t/${tenant}/w/${workspace}`;

/** What is about the server, whichever workspace is looked at. */
const OF_SERVER = /^\/api\/v1\/(login-options|logins|workspaces|version|healthz|readyz)\b/;

/** The address of a route, in the workspace `under`, which begins as `base` does. */
export function routeIn(under: string, path: string): string {
  return under === "" || OF_SERVER.test(path) ? path : path.replace(/^\/api\/v1\//, `/api/v1${under}/`);
}

export const route = (path: string) => routeIn(base, path);
