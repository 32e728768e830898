import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { ListChecks, Play, Trash2 } from "lucide-react";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { definition, removeWorkflow, workflow } from "@/api/queries";
import { Button } from "@/components/Button";
import { Failed, Loading, Problems } from "@/components/Told";
import { Canvas } from "@/graph/Canvas";
import { pictureOf } from "@/graph/picture";
import { textIn } from "@/i18n";
import { StartDialog } from "./StartDialog";

/** A saved workflow: its picture, what is wrong with it, its text. */
export function WorkflowPage() {
  const { id } = useParams({ from: "/workflows/$id" });
  const { t, i18n } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const saved = useQuery(workflow(id));
  const native = useQuery(definition(id));
  const [starting, setStarting] = useState(false);
  const [picked, setPicked] = useState<string | null>(null);
  const picture = useMemo(
    () => (native.data ? pictureOf(native.data, i18n.language) : null),
    [native.data, i18n.language],
  );
  const remove = useMutation({
    mutationFn: () => removeWorkflow(id),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ["workflows"] });
      await navigate({ to: "/workflows" });
    },
  });
  if (saved.isError)
    return (
      <div className="p-6">
        <Failed why={saved.error} again={() => void saved.refetch()} />
      </div>
    );
  const entry = saved.data?.value;
  const node = native.data?.nodes.find((one) => one.id === picked);
  return (
    <div className="flex h-full flex-col">
      <div className="flex flex-wrap items-center gap-2 border-b border-line bg-surface px-4 py-2">
        <h1 className="min-w-0 font-semibold break-words">
          <bdi>{textIn(native.data?.name, i18n.language, id)}</bdi>
        </h1>
        {entry ? (
          <span className="text-xs text-ink-faint">
            {t("workflows.revision", { revision: entry.revision })} · {t(`dialect.${entry.dialect}`, entry.dialect)}
          </span>
        ) : null}
        <div className="ml-auto flex gap-2">
          <Link
            to="/executions"
            search={{ workflow: id }}
            className="inline-flex h-8 items-center gap-1.5 rounded-md px-3 font-medium text-ink-soft hover:bg-sunken"
          >
            <ListChecks className="size-4" /> <span className="max-sm:sr-only">{t("shell.executions")}</span>
          </Link>
          <Button
            kind="quiet"
            onClick={() => window.confirm(t("workflows.deleteSure", { id })) && remove.mutate()}
            aria-label={t("workflows.delete")}
            title={t("workflows.delete")}
          >
            <Trash2 className="size-4" />
          </Button>
          <Button kind="primary" onClick={() => setStarting(true)}>
            <Play className="size-4" /> {t("workflows.start")}
          </Button>
        </div>
      </div>
      {remove.isError ? <Failed why={remove.error} /> : null}
      <div className="flex min-h-0 flex-1 max-md:flex-col">
        <div className="min-h-64 min-w-0 flex-1">
          {native.isError ? (
            <div className="p-4">
              <Failed why={native.error} />
            </div>
          ) : null}
          {picture ? (
            <Canvas picture={picture} picked={picked} onPick={setPicked} />
          ) : native.isPending ? (
            <Loading />
          ) : null}
        </div>
        <aside className="w-full overflow-auto border-line bg-surface p-4 md:w-96 md:border-l">
          {node ? (
            <section aria-label={t("workflows.node")}>
              <h2 className="font-semibold break-words">{textIn(node.name, i18n.language, node.id)}</h2>
              <p className="text-ink-faint">
                {t(`node.${node.type}`, node.type)} · <span className="font-mono text-xs">{node.id}</span>
              </p>
              <pre className="mt-3 overflow-auto rounded-md bg-sunken p-3 font-mono text-xs whitespace-pre-wrap">
                {JSON.stringify(node, null, 2)}
              </pre>
            </section>
          ) : (
            <section>
              <h2 className="font-semibold">{t("workflows.problems")}</h2>
              {entry && entry.problems.length === 0 ? (
                <p className="mt-1 text-done">{t("workflows.noProblems")}</p>
              ) : null}
              {entry ? <Problems problems={entry.problems} /> : <Loading />}
              <h2 className="mt-5 font-semibold">{t("workflows.text")}</h2>
              <pre className="mt-1 overflow-auto rounded-md bg-sunken p-3 font-mono text-xs">{entry?.text}</pre>
            </section>
          )}
        </aside>
      </div>
      {starting ? <StartDialog workflow={id} onClose={() => setStarting(false)} /> : null}
    </div>
  );
}
