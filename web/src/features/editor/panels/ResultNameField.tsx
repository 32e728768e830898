/** Field for the name by which later nodes read the result of a node. */
import { useEffect, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import type { DefinitionNode, Json } from "@/api/views";
import { HAS_RESULT, resultNameOf, withResultName } from "../document/resultNames";
import { fieldStyle } from "../fields/boxes";

export function ResultNameField(props: { node: DefinitionNode; onChange: (outputs: Json | undefined) => void }) {
  const { t } = useTranslation();
  const { node } = props;
  const id = useId();
  const stored = resultNameOf(node);
  const [text, setText] = useState(stored);
  useEffect(() => setText(stored), [stored]);
  if (!HAS_RESULT.has(node.type)) return null;
  const isTaken = text !== stored;
  return (
    <div>
      <label htmlFor={id} className="mb-0.5 block font-medium">
        {t("editor.keptAs")}
      </label>
      <input
        id={id}
        value={text}
        spellCheck={false}
        aria-invalid={isTaken}
        aria-describedby={`${id}-about`}
        onChange={(event) => {
          const name = event.target.value.trimStart().replaceAll(/\s/g, "_");
          setText(name);
          props.onChange(withResultName(node, name));
        }}
        className={`${fieldStyle(isTaken)} font-mono text-xs`}
      />
      <p id={`${id}-about`} className={`mt-0.5 text-xs ${isTaken ? "text-failed" : "text-ink-faint"}`}>
        {isTaken
          ? t("editor.twice")
          : text
            ? t("editor.keptAsRead", { name: `{${text}}` })
            : t("editor.keptAsAbout", { name: `{nodes.${node.id}}` })}
      </p>
    </div>
  );
}
