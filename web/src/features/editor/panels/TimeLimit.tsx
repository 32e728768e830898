import { useTranslation } from "react-i18next";
import type { DefinitionNode, Json } from "@/api/views";
import { objectOf } from "../document/shapes";
import { useEditor } from "../editorContext";
import { Field } from "../fields/Field";
import { pointerTo } from "../fields/fieldContext";

/** Types whose configuration holds the time limit; other nodes have one for their execution. */
const OWN_LIMIT = new Set(["human", "join", "wait"]);

/** The time limit of a node, shown beside an edge that is followed when it ends. */
export function TimeLimit({ node }: { node: DefinitionNode }) {
  const { t } = useTranslation();
  const { draft } = useEditor();
  const part = OWN_LIMIT.has(node.type) ? "config" : "execution";
  const pointer = `/${part}/timeout`;
  return (
    <Field
      shape={{ name: "timeout", about: t("editor.timeLimitAbout"), required: true, control: { kind: "duration" } }}
      value={objectOf(node[part] as Json | undefined).timeout}
      at={`${pointerTo("/nodes", draft.shown.nodes.indexOf(node))}${pointer}`}
      onChange={(value) =>
        draft.type({
          op: "change_node",
          node: node.id,
          ...(value === undefined ? { remove: [pointer] } : { set: { [pointer]: value } }),
        })
      }
    />
  );
}
