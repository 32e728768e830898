/** Why the user may not answer a gate; shown instead of the buttons. */
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { me } from "@/api/queries";
import type { Gate } from "@/api/views";
import { holders, mayAnswer } from "./assignees";

/** Null if the user may answer, or is not known yet. `isUser`: false for the recipient of a link, whom the server has
 * checked and who has no account. */
export function useBarredReason(gate: Gate, isUser: boolean): string | null {
  const { t, i18n } = useTranslation();
  const user = useQuery({ ...me(), enabled: isUser }).data;
  if (!user || !isUser) return null;
  if (user.role === "viewer") return t("gate.onlyLook");
  if (mayAnswer(gate, user)) return null;
  const { users, groups } = holders(gate);
  const holderNames = [...users, ...groups.map((group) => t("gate.group", { group }))];
  const names = new Intl.ListFormat(i18n.language, { type: "disjunction" }).format(holderNames);
  const to = gate.delegated[user.name];
  return to ? t("gate.delegatedByYou", { to }) : t("gate.asks", { names });
}
