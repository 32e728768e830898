/** Why the user may not answer a gate; shown instead of the buttons. */
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { me } from "@/api/queries";
import type { Gate } from "@/api/views";
import { useHasRole } from "@/components/useHasRole";
import { holders, mayAnswer } from "./assignees";

/** Null if the user may answer, or is not known yet. */
export function useBarred(gate: Gate): string | null {
  const { t, i18n } = useTranslation();
  const who = useQuery(me()).data;
  const isOperator = useHasRole("operator");
  if (!who) return null;
  if (!isOperator) return t("gate.onlyLook");
  if (mayAnswer(gate, who)) return null;
  const { users, groups } = holders(gate);
  const asked = [...users, ...groups.map((group) => t("gate.group", { group }))];
  const names = new Intl.ListFormat(i18n.language, { type: "disjunction" }).format(asked);
  const to = gate.delegated[who.name];
  return to ? t("gate.passedOn", { to }) : t("gate.asks", { names });
}
