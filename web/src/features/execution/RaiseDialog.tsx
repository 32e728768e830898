import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { control } from "@/api/queries";
import type { Execution } from "@/api/views";
import { amount } from "@/components/amounts";
import { Button } from "@/components/Button";
import { DialogActions } from "@/components/DialogActions";
import { DraftDialog } from "@/components/DraftDialog";
import { ErrorDetail } from "@/components/ErrorDetail";
import { LabelledField } from "@/components/LabelledField";
import { ErrorMessage } from "@/components/StatusMessage";
import { type ExceededLimit, IN_SECONDS, NO_PROGRESS } from "./limit";

/** Raise the limit that stopped an execution, and resume it. The proposed value grants the same amount again. */
export function RaiseDialog(props: {
  execution: Execution;
  limit: ExceededLimit;
  onClose: () => void;
  onDone: (next: Execution) => void;
}) {
  const { t } = useTranslation();
  const { name, message, offer } = props.limit;
  // The server's proposal can change while the user types: the typed value stays.
  const [typed, setTyped] = useState<string | null>(null);
  const to = typed ?? (offer?.next == null ? "" : String(offer.next));
  const needsNumber = name !== NO_PROGRESS;
  const isAtMaximum = offer !== null && offer.next === null;
  const raise = useMutation({
    mutationFn: () => control(props.execution.executionId, "resume", { limits: { [name]: Number(to) } }),
    onSuccess: (next) => {
      props.onDone(next);
      props.onClose();
    },
  });
  return (
    <DraftDialog open onClose={props.onClose} title={t("raise.title")} about={t("raise.about")}>
      <form
        className="space-y-3"
        onSubmit={(event) => {
          event.preventDefault();
          raise.mutate();
        }}
      >
        <ErrorDetail code={`limit-${name}`} message={message} />
        {isAtMaximum ? <p>{t("raise.noMore", { most: figure(offer.most ?? 0) })}</p> : null}
        {needsNumber && !isAtMaximum ? <NewLimit limit={props.limit} to={to} onChange={setTyped} /> : null}
        {needsNumber || isAtMaximum ? null : (
          <p>{t("raise.moreTries", { count: (offer?.next ?? 0) - (offer?.now ?? 0) })}</p>
        )}
        {raise.isError ? <ErrorMessage error={raise.error} /> : null}
        <DialogActions onClose={props.onClose}>
          {isAtMaximum ? null : (
            <Button kind="primary" type="submit" disabled={raise.isPending || to === ""}>
              {t(needsNumber ? "raise.go" : "raise.tryOn")}
            </Button>
          )}
        </DialogActions>
      </form>
    </DraftDialog>
  );
}

/** Costs in dollars need up to four decimals. */
function figure(value: number): string {
  return amount(value, 4);
}

/** Field for the new value of a limit, with its current value and usage. */
function NewLimit(props: { limit: ExceededLimit; to: string; onChange: (to: string) => void }) {
  const { t } = useTranslation();
  const { name, offer } = props.limit;
  const word = t(`field.${name}`, name);
  const known = offer ? t("raise.known", { now: figure(offer.now), used: figure(offer.used) }) : undefined;
  return (
    <LabelledField
      name={t(IN_SECONDS.has(name) ? "raise.toSeconds" : "raise.to", { limit: word })}
      about={
        offer?.most == null ? known : [known, t("raise.most", { most: figure(offer.most) })].filter(Boolean).join(" ")
      }
      required
    >
      {(its) => (
        <input
          {...its}
          type="number"
          step="any"
          min={0}
          {...(offer?.most == null ? {} : { max: offer.most })}
          value={props.to}
          onChange={(event) => props.onChange(event.target.value)}
        />
      )}
    </LabelledField>
  );
}
