/** The name by which later nodes read what a node brought. */
import { useEffect, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import type { DefinitionNode, Json } from "@/api/views";
import { BRINGS, keptAs, keptUnder } from "../document/resultNames";
import { dressed } from "../fields/boxes";

export function ResultNameField(props: { node: DefinitionNode; onChange: (outputs: Json | undefined) => void }) {
  const { t } = useTranslation();
  const { node } = props;
  const id = useId();
  const kept = keptAs(node);
  const [text, setText] = useState(kept);
  useEffect(() => setText(kept), [kept]);
  if (!BRINGS.has(node.type)) return null;
  const isTaken = text !== kept;
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
          props.onChange(keptUnder(node, name));
        }}
        className={`${dressed(isTaken)} font-mono text-xs`}
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
