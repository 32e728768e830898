import { ServerText } from "@/components/ErrorDetail";
import type { Tool } from "./tools";

/** The description of a tool for models: English for built-in tools, unknown language for others. */
export function ToolDescription({ tool, look = "" }: { tool: Tool; look?: string }) {
  if (tool.origin === "builtin") return <ServerText text={tool.description} look={look} />;
  return (
    <span lang="" className={`block wrap-anywhere ${look}`}>
      {tool.description}
    </span>
  );
}
