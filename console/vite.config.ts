import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const OUTPUT = "../src/gatehouse/platform/console/built";
const COMPRESSED = new Set([".css", ".html", ".js", ".svg"]);
// The platform to which the development server forwards requests.
const PLATFORM = process.env["GATEHOUSE_URL"] ?? "http://127.0.0.1:8000";

/** Writes compressed versions beside the files, so that the server does not compress them for each response. */
function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    writeBundle({ dir = OUTPUT }) {
      for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
        const path = join(entry.parentPath, entry.name);
        if (!entry.isFile() || !COMPRESSED.has(extname(path))) continue;
        const content = readFileSync(path);
        writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
        writeFileSync(`${path}.br`, brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
      }
    },
  };
}

export default defineConfig({
  base: "/console/",
  plugins: [react(), compressed()],
  build: {
    outDir: OUTPUT,
    emptyOutDir: true,
    // The application, and the page of a shared conversation, which needs no session.
    rolldownOptions: { input: ["index.html", "shared.html"] },
    // The oldest supported browsers. They support `light-dark()`, which the colors use.
    target: ["chrome123", "firefox121", "safari17.5"],
    // The content security policy allows `data:` URLs only for images, so assets are not inlined.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 700,
  },
  server: {
    port: 5173,
    // The proxy must not change the Host header, because the platform compares it with the Origin header.
    proxy: Object.fromEntries(
      ["/api", "/v1", "/login", "/logout", "/oauth", "/docs", "/openapi.json"].map((path) => [path, { target: PLATFORM }]),
    ),
  },
});
