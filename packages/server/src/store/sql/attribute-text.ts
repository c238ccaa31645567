/**
 * Searchable attributes as `jsonb`, which knows neither U+0000 nor halves of surrogate pairs.
 *
 * 1. Each of them, every other control character and the escape character U+F8FF itself become U+F8FF and four hexadecimal digits, in names and values alike; equal texts have equal
 *    encodings, so a search by equality works on encoded texts.
 */
import type { Attributes } from "../../engine/ports/store.ts";

const special = /[\p{Cc}\uf8ff]|\p{Surrogate}/gu;
const escaped = /\uf8ff([0-9a-f]{4})/g;

type AttributeValue = Attributes[string];

export function encodeAttributes(attributes: Attributes): string {
  return JSON.stringify(Object.fromEntries(Object.entries(attributes).map(([name, value]) => [escapeText(name), encodeValue(value)])));
}

export function decodeAttributes(text: string): Attributes {
  if (text === "") return {};
  const entries = Object.entries(JSON.parse(text) as Attributes);
  return Object.fromEntries(entries.map(([name, value]) => [unescapeText(name), decodeValue(value)]));
}

function encodeValue(value: AttributeValue): AttributeValue {
  if (typeof value === "string") return escapeText(value);
  return isTexts(value) ? value.map(escapeText) : value;
}

function decodeValue(value: AttributeValue): AttributeValue {
  if (typeof value === "string") return unescapeText(value);
  return isTexts(value) ? value.map(unescapeText) : value;
}

function isTexts(value: AttributeValue): value is readonly string[] {
  return Array.isArray(value);
}

function escapeText(text: string): string {
  return text.replace(special, (unit) => `\uf8ff${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function unescapeText(text: string): string {
  return text.replace(escaped, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
}
