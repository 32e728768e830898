/** Editor for a mocked result: a choice of branches for human tasks and decisions, and the whole value as JSON. */
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { DefinitionNode, Json } from "@/api/views";
import { JsonField, jsonIn } from "@/components/JsonField";
import { LabelledField } from "@/components/LabelledField";
import { useEditor } from "@/features/editor/editorContext";
import { answerName } from "@/graph/model/answerNames";
import { branchesOf, chosenBranch, withBranch } from "./sample";
import { tryoutOf } from "./tryout";

const LINES_MAX = 10;

export function PinnedValue(props: {
  id: string;
  node: DefinitionNode;
  value: Json;
  /** Results of the steps of this node in its last run. */
  known: readonly Json[];
}) {
  const { t, i18n } = useTranslation();
  const { draft } = useEditor();
  const { id, node, value, known } = props;
  // Invalid JSON stays as typed until the value changes elsewhere.
  const [typed, type] = useState<{ text: string; of: Json } | null>(null);
  const text = typed && typed.of === value ? typed.text : JSON.stringify(value, null, 2);
  const give = (next: Json) => tryoutOf(id).getState().pin(node.id, next);
  const ways = branchesOf(node, draft.shown);
  const way = chosenBranch(value);
  const write = (text: string) => {
    const read = jsonIn(text);
    type({ text, of: read === undefined ? value : read });
    if (read !== undefined) give(read);
  };
  const about =
    known.length === 0
      ? t("try.nothingKnown")
      : known.length > 1
        ? t("try.bringsEach", { times: known.length })
        : undefined;
  return (
    <div className="mt-3 space-y-2">
      {ways.length > 0 ? (
        <LabelledField name={t("try.leaves")}>
          {(its) => (
            <select
              {...its}
              value={way ?? ""}
              onChange={(event) => give(withBranch(node, event.target.value, value))}
              className={`${its.className} h-8`}
            >
              {way === null || !ways.includes(way) ? <option value={way ?? ""}>{way ?? ""}</option> : null}
              {ways.map((one) => (
                <option key={one} value={one}>
                  {answerName(node, one, i18n.language, t)}
                </option>
              ))}
            </select>
          )}
        </LabelledField>
      ) : null}
      <JsonField
        name={t("try.brings")}
        {...(about ? { about } : {})}
        text={text}
        rows={Math.min(LINES_MAX, text.split("\n").length + 1)}
        onChange={write}
      />
    </div>
  );
}
