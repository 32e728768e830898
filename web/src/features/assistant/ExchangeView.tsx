import { RotateCcw } from "lucide-react";
import { useTranslation } from "react-i18next";
import { ApiError } from "@/api/http";
import { Button } from "@/components/Button";
import { Chip } from "@/components/Chip";
import type { Operation } from "@/features/editor/document/operations";
import type { Exchange } from "./conversation";
import { DesignFailed } from "./NoModel";
import { ProposalView } from "./ProposalView";
import { Rounds } from "./Rounds";

const LOOKS = { accepted: "good", refused: "plain", stopped: "careful" } as const;

/** One exchange: the user's message, the rounds of the model, and the proposal. */
export function ExchangeView(props: {
  exchange: Exchange;
  isDeciding: boolean;
  onAccept: (taken: Operation[], all: number) => void;
  onRefuse: () => void;
  onRetry: () => void;
}) {
  const { t } = useTranslation();
  const { exchange: one } = props;
  const { outcome } = one;
  return (
    <li className="space-y-2">
      <p className="ml-8 rounded-lg rounded-br-sm bg-accent-soft px-3 py-2 break-words whitespace-pre-wrap">
        <bdi>{one.words}</bdi>
      </p>
      {one.rounds.length > 0 || outcome === "asked" ? (
        <Rounds rounds={one.rounds} isBusy={outcome === "asked"} />
      ) : null}
      {one.proposal && outcome === "proposed" ? (
        <ProposalView
          proposal={one.proposal}
          isDeciding={props.isDeciding}
          onAccept={props.onAccept}
          onRefuse={props.onRefuse}
        />
      ) : null}
      {one.why ? <DesignFailed error={new ApiError(one.why.status, one.why)} /> : null}
      {outcome === "nothing" ? <p className="text-ink-soft">{t("assistant.nothing")}</p> : null}
      <div className="flex flex-wrap items-center gap-2 empty:hidden">
        {outcome === "accepted" || outcome === "refused" || outcome === "stopped" ? (
          <Chip look={LOOKS[outcome]}>
            {one.part
              ? t("assistant.acceptedPart", { taken: one.part.taken, all: one.part.all })
              : t(`assistant.${outcome}`)}
          </Chip>
        ) : null}
        {outcome === "failed" || outcome === "stopped" || outcome === "nothing" ? (
          <Button kind="quiet" onClick={props.onRetry}>
            <RotateCcw className="size-4" aria-hidden /> {t("assistant.again")}
          </Button>
        ) : null}
      </div>
    </li>
  );
}
