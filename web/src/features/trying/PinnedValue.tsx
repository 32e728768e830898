/** What a node brings instead of being performed: the way it is left by, where people or decisions choose one; and all of
 * it as JSON. */
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { DefinitionNode, Json } from "@/api/views";
import { JsonField, jsonIn } from "@/components/JsonField";
import { LabelledField } from "@/components/LabelledField";
import { useEditor } from "@/features/editor/editorContext";
import { answerName } from "@/graph/model/answerNames";
import { takenBy, waysOf, wayTaken } from "./sample";
import { tryoutOf } from "./tryout";

const LINES_MAX = 10;

export function PinnedValue(props: {
  id: string;
  node: DefinitionNode;
  value: Json;
  /** What its steps brought when it ran last. */
  known: readonly Json[];
}) {
  const { t, i18n } = useTranslation();
  const { draft } = useEditor();
  const { id, node, value, known } = props;
  // Text that is no JSON yet stays as it is typed, until the value is changed from somewhere else.
  const [typed, type] = useState<{ text: string; of: Json } | null>(null);
  const text = typed && typed.of === value ? typed.text : JSON.stringify(value, null, 2);
  const give = (next: Json) => tryoutOf(id).getState().pin(node.id, next);
  const ways = waysOf(node, draft.shown);
  const way = wayTaken(value);
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
              onChange={(event) => give(takenBy(node, event.target.value, value))}
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
