// Adds a Brotli form beside every text of dist/, and prints what the first page loads.
import { readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants } from "node:zlib";

const dist = fileURLToPath(new URL("../dist", import.meta.url));
const files = (dir) => readdirSync(dir).flatMap((name) => {
  const path = join(dir, name);
  return statSync(path).isDirectory() ? files(path) : [path];
});
const sizes = new Map();
for (const path of files(dist)) {
  if (!/\.(js|css|html|svg)$/.test(path)) continue;
  const packed = brotliCompressSync(readFileSync(path), { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
  writeFileSync(`${path}.br`, packed);
  sizes.set(relative(dist, path), packed.length);
}
const html = readFileSync(join(dist, "index.html"), "utf8");
const first = [...sizes].filter(([name]) => html.includes(name));
const sum = (ending) => first.filter(([name]) => name.endsWith(ending)).reduce((total, [, size]) => total + size, 0);
console.log(`first page, compressed: ${(sum(".js") / 1000).toFixed(1)} kB of JavaScript, ${(sum(".css") / 1000).toFixed(1)} kB of CSS`);
