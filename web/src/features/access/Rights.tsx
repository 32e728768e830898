import { useQuery } from "@tanstack/react-query";
import { Check } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { QueryResult } from "@/components/QueryResult";
import { SearchBox } from "@/components/SearchBox";
import { EmptyMessage } from "@/components/StatusMessage";
import { useServerTexts } from "@/i18n/given";
import { type Right, ROLES, rights } from "./access";

/** The operations that each role may perform, as the server enforces them. */
export function Rights() {
  const { t } = useTranslation();
  const known = useQuery(rights());
  const { operation } = useServerTexts();
  const [wanted, setWanted] = useState("");
  const words = wanted.trim().toLowerCase();
  return (
    <>
      <ul className="mb-3 grid gap-x-6 gap-y-1 sm:grid-cols-2">
        {ROLES.map((role) => (
          <li key={role}>
            <span className="font-medium">{t(`role.${role}`)}</span>{" "}
            <span className="text-ink-soft">{t(`role.${role}About`)}</span>
          </li>
        ))}
      </ul>
      <SearchBox value={wanted} onChange={setWanted} label={t("people.searchRights")} />
      <div className="mt-3">
        <QueryResult query={known}>
          {(all) => {
            const found = all.filter((one) =>
              `${operation(one.says)} ${one.says} ${one.method} ${one.path}`.toLowerCase().includes(words),
            );
            return found.length ? (
              <Table found={found} />
            ) : (
              <EmptyMessage title={t("people.noRight", { words: wanted })} />
            );
          }}
        </QueryResult>
      </div>
    </>
  );
}

function Table({ found }: { found: readonly Right[] }) {
  const { t } = useTranslation();
  const { operation } = useServerTexts();
  return (
    <section
      aria-label={t("people.rights")}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard
      tabIndex={0}
      className="max-h-[60vh] overflow-auto rounded-lg border border-line bg-surface"
    >
      <table className="w-full border-separate border-spacing-0 text-left">
        <caption className="sr-only">{t("people.rights")}</caption>
        <thead>
          <tr className="text-xs text-ink-soft">
            <th scope="col" className="sticky top-0 border-b border-line bg-sunken px-4 py-1.5 font-medium">
              {t("people.operation")}
            </th>
            {ROLES.map((role) => (
              <th
                key={role}
                scope="col"
                className="sticky top-0 border-b border-line bg-sunken px-2 py-1.5 text-center font-medium"
              >
                {t(`role.${role}`)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {found.map((one) => (
            <tr key={`${one.method} ${one.path}`} className="hover:bg-sunken">
              <th scope="row" className="border-b border-line px-4 py-1.5 font-normal">
                {operation(one.says)}
                <span className="block font-mono text-xs wrap-anywhere text-ink-faint">
                  {one.method} {one.path}
                </span>
              </th>
              {ROLES.map((role) => (
                <td key={role} className="border-b border-line px-2 text-center">
                  {one.role === null ? (
                    <span className="text-xs text-ink-faint">{t("people.noKey")}</span>
                  ) : ROLES.indexOf(role) >= ROLES.indexOf(one.role) ? (
                    <Check role="img" className="mx-auto size-4 text-done" aria-label={t("people.may")} />
                  ) : (
                    <span className="sr-only">{t("people.mayNot")}</span>
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
