// Draws pictures of the documentation with the code of the web app: `docs/site/pictures.py` calls it.
// Standard input: {name: {title, definition} or {title, picture}}; standard output: {name: SVG}.
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import i18next from "i18next";
import { createServer } from "vite";

// The colours of the light theme in app.css.
const INK = {
  surface: "#ffffff",
  sunken: "#f4f5f7",
  strong: "#b8bec8",
  ink: "#16191e",
  faint: "#5f6878",
  soft: "#e7effd",
  failed: "#b42318",
};

// A page of text is narrow.
const IN_ROWS = { inRows: true };

const server = await createServer({
  root: fileURLToPath(new URL(".", import.meta.url)),
  appType: "custom",
  logLevel: "error",
  server: { middlewareMode: true, hmr: false, watch: null, ws: false },
  optimizeDeps: { noDiscovery: true },
});
try {
  const { renderSvg } = await server.ssrLoadModule("/src/graph/render/svg.ts");
  const { pictureOf } = await server.ssrLoadModule("/src/graph/model/picture.ts");
  const { default: words } = await server.ssrLoadModule("/src/i18n/en/index.ts");
  const language = i18next.createInstance();
  await language.init({ lng: "en", resources: { en: { translation: words } } });
  const drawn = {};
  for (const [name, { title, definition, picture }] of Object.entries(JSON.parse(await text(process.stdin)))) {
    const drawing = definition
      ? renderSvg(pictureOf(definition, "en", language.t), INK, title, (type) => language.t(`node.${type}`, type), IN_ROWS)
      : renderSvg(picture, INK, title, (type) => type, IN_ROWS);
    drawn[name] = `${drawing.text}\n`;
  }
  process.stdout.write(JSON.stringify(drawn));
} finally {
  await server.close();
}
