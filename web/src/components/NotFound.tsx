import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

export function NotFound() {
  const { t } = useTranslation();
  return (
    <div className="mx-auto max-w-lg p-10 text-center">
      <h1 className="text-lg font-semibold">{t("notFound.title")}</h1>
      <Link to="/workflows" className="mt-3 inline-block text-accent underline">
        {t("notFound.back")}
      </Link>
    </div>
  );
}
