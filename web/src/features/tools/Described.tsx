import { ServerText } from "@/components/ErrorDetail";
import type { Tool } from "./tools";

/** What a tool says of itself to models: ours in English, another's in whatever language. */
export function Described({ tool, look = "" }: { tool: Tool; look?: string }) {
  if (tool.origin === "builtin") return <ServerText text={tool.description} look={look} />;
  return (
    <span lang="" className={`block wrap-anywhere ${look}`}>
      {tool.description}
    </span>
  );
}
