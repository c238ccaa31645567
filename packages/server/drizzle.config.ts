import { defineConfig } from "drizzle-kit";

export default defineConfig({
  dialect: "postgresql",
  schema: "./src/store/sql/schema.ts",
  out: "./migrations",
  schemaFilter: ["wovyr"],
});
