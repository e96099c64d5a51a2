// Builds api/dashboard/static/*.js from src/*.js, and licences.txt from the packages that end up in them.
//   node build.mjs [FOLDER]      FOLDER: where to put them, by default ../static
import { build } from "esbuild";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const folder = process.argv[2] ?? "../static";
const entries = readdirSync("src").filter((name) => name.endsWith(".js")).sort();
const used = new Set();
for (const name of entries) {
  const made = await build({
    entryPoints: [join("src", name)],
    outfile: join(folder, name),
    bundle: true,
    minify: true,
    // page.js stands in the head and must run before the page is drawn, which modules do not
    format: name === "page.js" ? "iife" : "esm",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    // decoders that zarrita would load by itself: blosc.js takes their place, and stores need no other
    alias: Object.fromEntries(["blosc", "zstd", "lz4"].map((name) => [`numcodecs/${name}`, "./src/view/no_decoder.js"])),
    metafile: true,
    logLevel: "error",
  });
  for (const input of Object.keys(made.metafile.inputs)) {
    const at = input.lastIndexOf("node_modules/");
    if (at < 0) continue;
    const parts = input.slice(at + "node_modules/".length).split("/");
    used.add(input.slice(0, at) + "node_modules/" + parts.slice(0, parts[0].startsWith("@") ? 2 : 1).join("/"));
  }
}

function licence(path) {
  const about = JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
  const file = readdirSync(path).find((name) => /^licen[cs]e/i.test(name));
  const text = file ? readFileSync(join(path, file), "utf8").trim() : `Licence: ${about.license}`;
  return `${about.name} ${about.version} (${about.license})\n\n${text}\n`;
}

const texts = [...used].sort().map(licence);
writeFileSync(join(folder, "licences.txt"), texts.join(`\n${"-".repeat(80)}\n\n`));
