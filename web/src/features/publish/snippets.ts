/** Code that starts this workflow from other programs and pages. */
import type { Json } from "@/api/views";

export const LANGUAGES = ["curl", "python", "typescript"] as const;
export type SnippetLanguage = (typeof LANGUAGES)[number];

/** A sample input for a JSON Schema of an object: the default of each field, or an empty value of its type. */
export function sampleInput(schema: Json): Record<string, Json> {
  const properties = isObject(schema) && isObject(schema.properties) ? schema.properties : {};
  return Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, sampleOf(field)]));
}

const EMPTY: Record<string, Json> = { string: "", number: 0, integer: 0, boolean: false, array: [], object: {} };

function sampleOf(field: Json): Json {
  if (!isObject(field)) return null;
  if (field.default !== undefined) return field.default;
  if (Array.isArray(field.enum) && field.enum.length > 0) return field.enum[0] as Json;
  return (typeof field.type === "string" ? EMPTY[field.type] : undefined) ?? null;
}

const isObject = (value: Json | undefined): value is { [name: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export function snippet(language: SnippetLanguage, server: string, workflow: string, input: Json): string {
  const body = JSON.stringify({ input, wait: true });
  const address = `${server}/api/workflows/${encodeURIComponent(workflow)}/execute`;
  switch (language) {
    case "curl":
      // In single quotes a shell changes nothing, so a quote ends the text, stands alone, and begins it again.
      return [
        `curl ${address} \\`,
        '  -H "Authorization: Bearer $POINTSMAN_KEY" \\',
        '  -H "Content-Type: application/json" \\',
        `  -d '${body.replaceAll("'", "'\\''")}'`,
      ].join("\n");
    case "python":
      return [
        "import json",
        "import os",
        "",
        "from pointsman import sync",
        "",
        `client = sync.Client(${JSON.stringify(server)}, key=os.environ["POINTSMAN_KEY"])`,
        `execution = client.start(${JSON.stringify(workflow)}, json.loads(${JSON.stringify(JSON.stringify(input))}))`,
        "execution.settled()",
        "print(execution.output())",
      ].join("\n");
    case "typescript":
      return [
        `const reply = await fetch(${JSON.stringify(address)}, {`,
        '  method: "POST",',
        "  headers: {",
        '    authorization: "Bearer " + process.env.POINTSMAN_KEY,',
        '    "content-type": "application/json",',
        "  },",
        `  body: JSON.stringify(${JSON.stringify({ input, wait: true })}),`,
        "});",
        "console.log(await reply.json());",
      ].join("\n");
  }
}

/** The script element that puts a published form into a page. */
export function widget(server: string, embedPath: string, title: string): string {
  const token = embedPath.split("/").at(-1) ?? "";
  const safe = title.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
  return `<script src="${server}/embed.js" data-form="${token}" data-title="${safe}" async></script>`;
}
