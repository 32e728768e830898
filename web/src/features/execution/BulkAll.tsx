/** Actions on the whole result of the filters, not only on the entries that are listed. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { ChevronDown } from "lucide-react";
import { DropdownMenu } from "radix-ui";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { apiRequest } from "@/api/http";
import type { ExecutionFilter } from "@/api/queries";
import type { Schemas } from "@/api/views";
import { Button } from "@/components/Button";
import { Confirm } from "@/components/Confirm";
import { ErrorMessage } from "@/components/StatusMessage";
import { useHasRole } from "@/components/useHasRole";
import type { BulkResult, BulkVerb } from "./BulkActions";

const VERBS: readonly BulkVerb[] = ["pause", "resume", "retry", "cancel", "delete"];

/** The server selects by these filters; a search by words has one page only. */
function selectionOf({ workflow, status, since, until }: ExecutionFilter) {
  const narrowed = {
    ...(workflow ? { workflow } : {}),
    ...(status ? { statuses: status } : {}),
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
  };
  return Object.keys(narrowed).length > 0 ? narrowed : { all: true };
}

const bulk = (body: object) => apiRequest<Schemas["BulkResults"]>("/api/workflows/executions/bulk", { body });

export function BulkAll(props: { filter: ExecutionFilter; onDone: (result: BulkResult) => void }) {
  const { t } = useTranslation();
  const isAdmin = useHasRole("admin");
  const [verb, setVerb] = useState<BulkVerb | null>(null);
  return (
    <>
      <DropdownMenu.Root>
        <DropdownMenu.Trigger asChild>
          <Button kind="quiet" className="h-7 px-2">
            {t("executions.onAll")} <ChevronDown className="size-3.5" aria-hidden />
          </Button>
        </DropdownMenu.Trigger>
        <DropdownMenu.Portal>
          <DropdownMenu.Content
            align="start"
            className="z-40 min-w-44 rounded-md border border-line bg-raised p-1 shadow-lg"
          >
            {VERBS.filter((one) => one !== "delete" || isAdmin).map((one) => (
              <DropdownMenu.Item
                key={one}
                onSelect={() => setVerb(one)}
                className="flex h-8 cursor-pointer items-center rounded px-2.5 outline-none data-[highlighted]:bg-sunken"
              >
                {t(`execution.${one}`)}
              </DropdownMenu.Item>
            ))}
          </DropdownMenu.Content>
        </DropdownMenu.Portal>
      </DropdownMenu.Root>
      {verb ? <ConfirmAll {...props} verb={verb} onClose={() => setVerb(null)} /> : null}
    </>
  );
}

/** Ask with the number of executions, which a dry run counts. */
function ConfirmAll(props: {
  verb: BulkVerb;
  filter: ExecutionFilter;
  onDone: (result: BulkResult) => void;
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const { verb, filter } = props;
  const counted = useQuery({
    queryKey: ["bulk", verb, filter],
    queryFn: () => bulk({ verb, ...selectionOf(filter), dryRun: true }),
    gcTime: 0,
  });
  const act = async () => {
    const result = await bulk({ verb, ...selectionOf(filter) });
    props.onDone({ verb, ...result });
    await client.invalidateQueries({ queryKey: ["executions"] });
  };
  if (counted.isError) return <ErrorMessage error={counted.error} />;
  if (!counted.data) return null;
  const count = counted.data.executions.filter((one) => one.status !== "refused").length;
  return (
    <Confirm
      title={t("executions.allSure", { verb: t(`execution.${verb}`), count })}
      about={t("executions.allAbout")}
      confirmLabel={t(`execution.${verb}`)}
      action={act}
      onClose={props.onClose}
    />
  );
}
