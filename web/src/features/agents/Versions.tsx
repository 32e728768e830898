import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiResponse } from "@/api/http";
import type { Json, JsonObject } from "@/api/views";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { DialogActions } from "@/components/DialogActions";
import { JsonTree } from "@/components/JsonTree";
import { Listing } from "@/components/Listing";
import { QueryResult } from "@/components/QueryResult";
import { RelativeTime } from "@/components/RelativeTime";
import { ErrorMessage } from "@/components/StatusMessage";
import { useHasRole } from "@/components/useHasRole";
import { type Agent, saveAgent, versions } from "./agents";

/** The revisions of an agent; an older one can be viewed and restored as the newest. */
export function Versions({ read }: { read: ApiResponse<Agent> }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const mayWrite = useHasRole("editor");
  const known = useQuery(versions(read.value.name));
  const [shown, setShown] = useState<Agent | null>(null);
  const back = useMutation({
    mutationFn: (one: Agent) => saveAgent(read, one.agent as JsonObject),
    onSuccess: () => setShown(null),
    onSettled: () => client.invalidateQueries({ queryKey: ["agents"] }),
  });
  return (
    <QueryResult query={known}>
      {(found) => (
        <>
          <Listing
            name={t("agents.versions")}
            entries={found}
            keyOf={(one) => String(one.revision)}
            columns={[
              { name: t("agents.version"), cell: (one) => t("agents.revision", { revision: one.revision }) },
              {
                name: t("agents.saved"),
                cell: (one) => <RelativeTime at={one.savedAt} />,
              },
              { name: t("agents.by"), cell: (one) => one.author || null },
              {
                name: t("agents.do"),
                isNarrow: true,
                cell: (one) => (
                  <Button
                    kind="quiet"
                    onClick={() => setShown(one)}
                    aria-label={t("agents.showNamed", { revision: one.revision })}
                  >
                    {t("agents.show")}
                  </Button>
                ),
              },
            ]}
          />
          {shown ? (
            <Dialog open wide onClose={() => setShown(null)} title={t("agents.revision", { revision: shown.revision })}>
              <JsonTree value={shown.agent as Json} />
              {back.isError ? (
                <div className="mt-3">
                  <ErrorMessage error={back.error} />
                </div>
              ) : null}
              {mayWrite && shown.revision !== read.value.revision ? (
                <DialogActions onClose={() => setShown(null)}>
                  <Button kind="primary" onClick={() => back.mutate(shown)} disabled={back.isPending}>
                    {t("agents.bringBack")}
                  </Button>
                </DialogActions>
              ) : null}
            </Dialog>
          ) : null}
        </>
      )}
    </QueryResult>
  );
}
