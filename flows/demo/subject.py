"""What the demo is about."""

AS_OF = "2014-01-01"
MODEL = "flight-delay"
TARGET = "local"
SOURCES = ("nyc/flights", "nyc/planes", "nyc/weather")
