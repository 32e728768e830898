/** A proposal that the user can accept completely or in part. The server checks the accepted part. */
import { useQuery } from "@tanstack/react-query";
import { Check, Maximize2, X } from "lucide-react";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { apiRequest, type Problem } from "@/api/http";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { ErrorMessage, ProblemList } from "@/components/StatusMessage";
import { applyOperation, editRequest, type Operation } from "@/features/editor/document/operations";
import { useEditor } from "@/features/editor/editorContext";
import { DiffView } from "@/features/editor/panels/DiffView";
import type { Proposal } from "./conversation";
import { PartList } from "./PartList";
import { acceptedParts, partsOf } from "./parts";

export function ProposalView(props: {
  proposal: Proposal;
  isDeciding: boolean;
  /** `all` is the number of parts of the proposal. */
  onAccept: (taken: Operation[], all: number) => void;
  onRefuse: () => void;
}) {
  const { t } = useTranslation();
  const { proposal } = props;
  const [large, setLarge] = useState(false);
  const [refused, refuse] = useState<ReadonlySet<number>>(new Set());
  const parts = useMemo(() => partsOf(proposal.changes), [proposal]);
  const { accepted: taken, dropped: fallen } = useMemo(
    () => acceptedParts(proposal.before, parts, refused),
    [proposal, parts, refused],
  );
  const after = useMemo(() => taken.reduce(applyOperation, proposal.before), [taken, proposal]);
  const isWhole = taken.length === parts.length;
  const problemChange = useProblemChange(proposal, taken, isWhole);
  return (
    <>
      <section aria-label={t("assistant.proposal")} className="space-y-2">
        <DiffView before={proposal.before} after={after} />
        <Button kind="quiet" onClick={() => setLarge(true)}>
          <Maximize2 className="size-4" aria-hidden /> {t("assistant.large")}
        </Button>
        {parts.length > 1 ? <PartList parts={parts} refused={refused} dropped={fallen} onRefuse={refuse} /> : null}
        <div aria-live="polite" className="space-y-2">
          {problemChange.error ? <ErrorMessage error={problemChange.error} /> : null}
          {problemChange.data && problemChange.data.brings.length > 0 ? (
            <div>
              <p className="font-medium">{t("assistant.brings", { count: problemChange.data.brings.length })}</p>
              <ProblemList problems={problemChange.data.brings} />
            </div>
          ) : null}
          {problemChange.data?.brings.length === 0 ? <p className="text-done">{t("assistant.bringsNone")}</p> : null}
        </div>
        {problemChange.data && problemChange.data.mends.length > 0 ? (
          <details>
            <summary className="min-h-6 cursor-pointer text-done">
              {t("assistant.mends", { count: problemChange.data.mends.length })}
            </summary>
            <ProblemList problems={problemChange.data.mends} />
          </details>
        ) : null}
        <Dialog open={large} onClose={() => setLarge(false)} title={t("assistant.proposal")} wide>
          <DiffView before={proposal.before} after={after} />
        </Dialog>
      </section>
      <div className="flex flex-wrap items-center gap-2">
        <Button
          kind="primary"
          onClick={() => props.onAccept(taken, parts.length)}
          disabled={props.isDeciding || taken.length === 0}
        >
          <Check className="size-4" aria-hidden />{" "}
          {isWhole ? t("assistant.accept") : t("assistant.acceptPart", { taken: taken.length, all: parts.length })}
        </Button>
        <Button onClick={props.onRefuse} disabled={props.isDeciding}>
          <X className="size-4" aria-hidden /> {t(isWhole ? "assistant.refuse" : "assistant.refuseAll")}
        </Button>
      </div>
    </>
  );
}

interface ProblemChange {
  brings: Problem[];
  mends: Problem[];
}

/** The server checked the complete proposal when the model made it. */
function useProblemChange(proposal: Proposal, taken: Operation[], isWhole: boolean) {
  const { id, draft } = useEditor();
  const changes = [...draft.done, taken];
  return useQuery<ProblemChange>({
    queryKey: ["brought", id, isWhole, isWhole ? proposal : changes],
    queryFn: async ({ signal }) => {
      if (isWhole) return { brings: proposal.brings, mends: proposal.mends };
      const path = `/api/workflows/${encodeURIComponent(id)}/edit`;
      const [with_, without] = await Promise.all(
        [changes, draft.done].map((done) =>
          apiRequest<{ problems: Problem[] }>(path, { body: editRequest(done), signal }).then(
            (checked) => checked.problems,
          ),
        ),
      );
      return { brings: beyond(with_, without), mends: beyond(without, with_) };
    },
    ...(isWhole ? { initialData: { brings: proposal.brings, mends: proposal.mends } } : {}),
    gcTime: 0,
    retry: false,
  });
}

function beyond(some: readonly Problem[] = [], others: readonly Problem[] = []): Problem[] {
  const known = new Set(others.map((one) => `${one.code} ${one.message}`));
  return some.filter((one) => !known.has(`${one.code} ${one.message}`));
}
