/** The whole text was typed here while somebody saved another one: a person looks at both and says which is it. */
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

/** `mine` replaces theirs; `theirs` leaves out what was typed, and keeps what was drawn. */
export interface Choice {
  whose: "mine" | "theirs";
  /** The revision that was looked at: nobody decides about one that came later. */
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
  const told = theirs.data?.value;
  const choose = (whose: Choice["whose"]) => theirs.data && props.onChoose({ whose, theirs: theirs.data });
  return (
    <Dialog open wide onClose={props.onClose} title={t("moved.typed")} about={t("moved.typedAbout")}>
      {theirs.isError ? <ErrorMessage error={theirs.error} onRetry={() => void theirs.refetch()} /> : null}
      {theirs.isPending ? <Loading /> : null}
      {told ? (
        <>
          <Suspense fallback={<Loading />}>
            <TextDiff before={told.text} after={props.mine} />
          </Suspense>
          <p className="mt-3 text-ink-soft">{t("moved.mineAbout", { revision: told.revision })}</p>
          <p className="text-ink-soft">{t("moved.theirsAbout")}</p>
        </>
      ) : null}
      <DialogActions onClose={props.onClose} cancelLabel={t("moved.later")}>
        <CopyButton text={props.mine} name={t("moved.myText")} />
        <Button onClick={() => choose("theirs")} disabled={!told || props.isBusy}>
          {t("moved.theirs")}
        </Button>
        <Button kind="primary" onClick={() => choose("mine")} disabled={!told || props.isBusy}>
          {t("moved.mine")}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
