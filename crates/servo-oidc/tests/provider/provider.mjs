// A real OpenID provider for tests: `node provider.mjs PORT CALLBACK...`. Prints its issuer when it listens.
//
// Everybody who comes is let in, as the account that `login_hint` names, or `alice`; groups of an account are in
// GROUPS. Keys are made at the start, so that a provider that is started again has new ones. POST /test/mint signs
// whatever it is given, as a provider that was broken into would.
import { createHmac } from "node:crypto";
import { Provider } from "oidc-provider";
import { exportJWK, generateKeyPair, importJWK, SignJWT } from "jose";

const [port, ...callbacks] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const GROUPS = { alice: ["admins"], bob: ["operators"], carol: [] };

async function key(alg) {
  const { privateKey } = await generateKeyPair(alg, { extractable: true });
  const kid = `${alg}-${Math.random().toString(36).slice(2)}`;
  return { ...(await exportJWK(privateKey)), kid, alg, use: "sig" };
}
const keys = [await key("RS256"), await key("ES256")];

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "servo",
      token_endpoint_auth_method: "none",
      redirect_uris: callbacks,
      grant_types: ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
    },
    {
      client_id: "confidential",
      client_secret: "a secret: with +&%",
      redirect_uris: callbacks,
      grant_types: ["authorization_code"],
    },
  ],
  jwks: { keys },
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["groups"] },
  conformIdTokenClaims: false,
  features: {
    devInteractions: { enabled: false },
    deviceFlow: {
      enabled: true,
      userCodeInputSource: (ctx, form) => { ctx.body = form; },
      userCodeConfirmSource: (ctx, form) => { ctx.body = form; },
      successSource: (ctx) => { ctx.body = "done"; },
    },
  },
  pkce: { required: () => true },
  ttl: { IdToken: 3600, AccessToken: 3600, DeviceCode: 600, Interaction: 600, Session: 600, Grant: 600, RefreshToken: 3600 },
  issueRefreshToken: async (_, client, code) => client.grantTypeAllowed("refresh_token") && code.scopes.has("offline_access"),
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  findAccount: async (_, id) => ({
    accountId: id,
    claims: async () => ({ sub: id, email: `${id}@example.org`, email_verified: true, groups: GROUPS[id] ?? [] }),
  }),
  loadExistingGrant: async (ctx) => {
    const grant = new provider.Grant({ clientId: ctx.oidc.client.clientId, accountId: ctx.oidc.session.accountId });
    grant.addOIDCScope("openid email profile offline_access");
    await grant.save();
    return grant;
  },
});

async function body(ctx) {
  let text = "";
  for await (const part of ctx.req) text += part;
  return JSON.parse(text);
}

async function mint({ header = {}, claims, with: way = "key" }) {
  const now = Math.floor(Date.now() / 1000);
  const payload = { iss: issuer, aud: "servo", sub: "alice", iat: now, exp: now + 600, groups: ["admins"], ...claims };
  for (const name of Object.keys(payload)) if (payload[name] === null) delete payload[name];
  const jwk = keys.find((each) => each.alg === (header.alg ?? "RS256")) ?? keys[0];
  const head = { alg: jwk.alg, kid: jwk.kid, ...header };
  const plain = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = `${plain(head)}.${plain(payload)}`;
  if (way === "none") return `${signed}.c2ln`;
  if (way === "public") {
    const { kty, n, e, kid } = jwk;
    const sign = (secret) => createHmac("sha256", secret).update(signed).digest("base64url");
    return `${signed}.${sign(JSON.stringify({ kty, n, e, kid }))}`;
  }
  if (way === "other") {
    const { privateKey } = await generateKeyPair("RS256");
    return new SignJWT(payload).setProtectedHeader(head).sign(privateKey);
  }
  return new SignJWT(payload).setProtectedHeader({ ...head, alg: jwk.alg }).sign(await importJWK(jwk, jwk.alg));
}

provider.use(async (ctx, next) => {
  if (ctx.path.startsWith("/interaction/")) {
    const { params } = await provider.interactionDetails(ctx.req, ctx.res);
    const login = { accountId: params.login_hint ?? ctx.query.as ?? "alice" };
    await provider.interactionFinished(ctx.req, ctx.res, { login }, { mergeWithLastSubmission: false });
    ctx.respond = false;
  } else if (ctx.path === "/test/mint") {
    ctx.body = await mint(await body(ctx));
  } else if (ctx.path === "/test/redirecting/.well-known/openid-configuration") {
    ctx.redirect(`${issuer}/.well-known/openid-configuration`);
  } else {
    await next();
  }
});

provider.listen(Number(port), "127.0.0.1", () => console.log(issuer));
