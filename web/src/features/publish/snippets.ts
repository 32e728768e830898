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

/** The configuration of an MCP client, as most of them read it. */
export function mcpConfiguration(server: string): string {
  const entry = { type: "http", url: `${server}/mcp`, headers: { Authorization: "Bearer POINTSMAN_KEY" } };
  return JSON.stringify({ mcpServers: { pointsman: entry } }, null, 2);
}

/** Code that talks to this workflow with the client of OpenAI. */
export function openAiCode(server: string, workflow: string): string {
  return [
    "import os",
    "",
    "from openai import OpenAI",
    "",
    `client = OpenAI(base_url=${JSON.stringify(`${server}/v1`)}, api_key=os.environ["POINTSMAN_KEY"])`,
    `messages = [{"role": "user", "content": "Hello"}]`,
    `reply = client.chat.completions.create(model=${JSON.stringify(workflow)}, messages=messages)`,
    "print(reply.choices[0].message.content)",
  ].join("\n");
}

const OTHER = /[^A-Za-z0-9_-]/g;
const TOOL_CHARS_MAX = 64;

/** The name of a workflow as a tool: as `tool_name` of the server. */
export const toolName = (workflow: string) => `workflow__${workflow.replace(OTHER, "_")}`.slice(0, TOOL_CHARS_MAX);

/** The script element that puts a published form or chat into a page. */
export function widget(server: string, embedPath: string, title: string): string {
  const token = embedPath.split("/").at(-1) ?? "";
  const kind = embedPath.startsWith("/embed/chat/") ? "chat" : "form";
  const safe = title.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
  return `<script src="${server}/embed.js" data-${kind}="${token}" data-title="${safe}" async></script>`;
}
