import { queryOptions, useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { apiRequest } from "@/api/http";
import type { Schemas } from "@/api/views";
import { Chip } from "@/components/Chip";
import { PageSection } from "@/components/DescriptionList";
import { Listing } from "@/components/Listing";
import { EmptyMessage } from "@/components/StatusMessage";

type Report = Schemas["WorkersReport"];
type Worker = Schemas["WorkerView"];

const workers = queryOptions({
  queryKey: ["workers"],
  queryFn: ({ signal }) => apiRequest<Report>("/api/workers", { signal }),
  refetchInterval: 10_000,
});

/** The processes of the store, the queues of placed steps, and the owners of executions. */
export function Workers() {
  const { t } = useTranslation();
  const { data } = useQuery(workers);
  if (data === undefined) return null;
  return (
    <PageSection title={t("settings.workers.title")}>
      {data.shared ? <Tables report={data} /> : <EmptyMessage title={t("settings.workers.alone")} />}
    </PageSection>
  );
}

function Tables({ report }: { report: Report }) {
  const { t } = useTranslation();
  return (
    <div className="flex flex-col gap-6">
      <Listing
        name={t("settings.workers.title")}
        entries={report.workers}
        keyOf={(one) => one.name}
        columns={[
          { name: t("settings.workers.name"), cell: (one) => <code className="wrap-anywhere">{one.name}</code> },
          { name: t("settings.workers.role"), cell: (one) => one.role },
          { name: t("settings.version"), cell: (one) => one.version },
          { name: t("settings.workers.queues"), cell: (one) => one.queues.join(", ") || null },
          {
            name: t("settings.workers.executions"),
            cell: (one) => loadOf(one.executions, drives(one) ? one.capacity : 0),
            isNumber: true,
          },
          {
            name: t("settings.workers.steps"),
            cell: (one) => loadOf(one.steps, drives(one) ? 0 : one.capacity),
            isNumber: true,
          },
        ]}
      />
      <Queues report={report} />
      <Listing
        name={t("settings.workers.owned")}
        entries={report.owned}
        keyOf={(one) => one.executionId}
        columns={[
          { name: t("settings.workers.execution"), cell: (one) => <code>{one.executionId}</code> },
          { name: t("settings.workers.name"), cell: (one) => <code className="wrap-anywhere">{one.worker}</code> },
        ]}
      />
    </div>
  );
}

function Queues({ report }: { report: Report }) {
  const { t } = useTranslation();
  return (
    <Listing
      name={t("settings.workers.queues")}
      entries={report.queues}
      keyOf={(one) => one.queue}
      columns={[
        { name: t("settings.workers.queue"), cell: (one) => <code>{one.queue}</code> },
        {
          name: t("settings.workers.title"),
          cell: (one) =>
            one.workers > 0 || one.waiting === 0 ? one.workers : <Chip look="bad">{t("settings.workers.none")}</Chip>,
          isNumber: true,
        },
        { name: t("settings.workers.running"), cell: (one) => one.running, isNumber: true },
        { name: t("settings.workers.waiting"), cell: (one) => one.waiting, isNumber: true },
      ]}
    />
  );
}

/** A number, with the limit of the worker if it has one. */
function loadOf(load: number, capacity: number) {
  return capacity > 0 ? `${load} / ${capacity}` : load;
}

const drives = (one: Worker) => one.queues.length === 0;
