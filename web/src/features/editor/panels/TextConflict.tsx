/** Dialog for a typed text that conflicts with a newer revision: the user compares both and chooses one. */
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { useTranslation } from "react-i18next";
import { type ApiResponse, apiResponse } from "@/api/http";
import type { WorkflowDetail } from "@/api/views";
import { Button } from "@/components/Button";
import { CopyButton } from "@/components/CopyButton";
import { Dialog } from "@/components/Dialog";
import { DialogActions } from "@/components/DialogActions";
import { ErrorMessage, Loading } from "@/components/StatusMessage";

const TextDiff = lazy(() => import("./TextDiff"));

/** `mine` replaces the newer revision; `theirs` drops the typed text and keeps the other changes. */
export interface Choice {
  whose: "mine" | "theirs";
  /** The revision that the user compared, so that the choice does not apply to a later one. */
  theirs: ApiResponse<WorkflowDetail>;
}

export function TextConflict(props: {
  path: string;
  mine: string;
  isBusy: boolean;
  onChoose: (choice: Choice) => void;
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const theirs = useQuery({
    queryKey: ["workflow", "typed over", props.path],
    queryFn: ({ signal }) => apiResponse<WorkflowDetail>(props.path, { signal }),
    staleTime: 0,
    gcTime: 0,
  });
  const theirRevision = theirs.data?.value;
  const choose = (whose: Choice["whose"]) => theirs.data && props.onChoose({ whose, theirs: theirs.data });
  return (
    <Dialog
      open
      wide
      onClose={props.onClose}
      title={t("revisionConflict.typed")}
      about={t("revisionConflict.typedAbout")}
    >
      {theirs.isError ? <ErrorMessage error={theirs.error} onRetry={() => void theirs.refetch()} /> : null}
      {theirs.isPending ? <Loading /> : null}
      {theirRevision ? (
        <>
          <Suspense fallback={<Loading />}>
            <TextDiff before={theirRevision.text} after={props.mine} />
          </Suspense>
          <p className="mt-3 text-ink-soft">{t("revisionConflict.mineAbout", { revision: theirRevision.revision })}</p>
          <p className="text-ink-soft">{t("revisionConflict.theirsAbout")}</p>
        </>
      ) : null}
      <DialogActions onClose={props.onClose} cancelLabel={t("revisionConflict.later")}>
        <CopyButton text={props.mine} name={t("revisionConflict.myText")} />
        <Button onClick={() => choose("theirs")} disabled={!theirRevision || props.isBusy}>
          {t("revisionConflict.theirs")}
        </Button>
        <Button kind="primary" onClick={() => choose("mine")} disabled={!theirRevision || props.isBusy}>
          {t("revisionConflict.mine")}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
