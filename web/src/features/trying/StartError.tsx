/**
 * Why a partial run did not start: a translated message with the name of the node if there is one, otherwise the
 * server's message.
 */
import { CircleAlert } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "@/api/http";
import { ServerText } from "@/components/ErrorDetail";
import { ErrorMessage } from "@/components/StatusMessage";
import { useEditor } from "@/features/editor/editorContext";
import { answerName } from "@/graph/model/answerNames";
import { useNodeName } from "@/graph/model/nodeNames";
import { branchesOf } from "./sample";

export function StartError({ why }: { why: ApiError }) {
  const { t, i18n } = useTranslation();
  const { draft, pick, canvas } = useEditor();
  const nameOf = useNodeName();
  const { node: id, reason } = why.unfit ?? {};
  const node = draft.shown.nodes.find((one) => one.id === id);
  if (!node || !i18n.exists(`try.unfit.${reason}`)) return <ErrorMessage error={why} />;
  const name = nameOf(node.id);
  const show = () => {
    pick({ kind: "node", id: node.id });
    canvas.reveal([node.id]);
  };
  const ways = branchesOf(node, draft.shown).map((way) => answerName(node, way, i18n.language, t));
  return (
    <div role="alert" className="flex gap-3 rounded-md border border-failed/40 bg-failed-soft p-3 text-failed">
      <CircleAlert className="mt-0.5 size-4 shrink-0" aria-hidden />
      <div className="min-w-0">
        <p className="font-medium wrap-anywhere">{t(`try.unfit.${reason}`, { node: name })}</p>
        {reason === "leads-nowhere" && ways.length > 0 ? (
          <p className="text-ink-soft wrap-anywhere">
            {t("try.unfitWays", { ways: new Intl.ListFormat(i18n.language, { type: "disjunction" }).format(ways) })}
          </p>
        ) : null}
        {reason === "schema-forbids" ? (
          <ServerText text={why.message.replace(`'${node.id}'`, name)} look="text-sm text-ink-soft" />
        ) : null}
        <button type="button" className="mt-1 min-h-6 underline" onClick={show}>
          {t("execution.showNode")}
        </button>
      </div>
    </div>
  );
}
