import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.legacy.RichSinkFunction;
import org.apache.flink.streaming.api.functions.source.legacy.RichParallelSourceFunction;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * A topic of events in, a topic of matches out: SEQ(A a, B b, C c) of one key within a window, until the process ends.
 *
 * <p>Arguments: servers, input topic, output topic, window and lateness in milliseconds, parallelism. Source and sink use
 * Kafka's own client, because the connector for this version of Flink is not published with it.
 */
public final class Latency {
    private Latency() {}

    public static void main(String[] arguments) throws Exception {
        String servers = arguments[0];
        long windowMs = Long.parseLong(arguments[3]);
        Duration lateness = Duration.ofMillis(Long.parseLong(arguments[4]));
        int parallelism = Integer.parseInt(arguments[5]);
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.createLocalEnvironment(parallelism, new Configuration());
        environment.getConfig().enableObjectReuse();
        environment.setBufferTimeout(1); // milliseconds; the default of 100 is for throughput
        environment.getConfig().setAutoWatermarkInterval(10); // the default is 200
        DataStream<Event> events =
                environment
                        .addSource(new Source(servers, arguments[1]), "topic", TypeInformation.of(Event.class))
                        .setParallelism(1) // as the topic has partitions
                        .assignTimestampsAndWatermarks(
                                WatermarkStrategy.<Event>forBoundedOutOfOrderness(lateness)
                                        .withTimestampAssigner((event, before) -> event.timeMs));
        Pattern<Event, ?> pattern =
                Pattern.<Event>begin("a").where(is('A'))
                        .followedByAny("b").where(is('B'))
                        .followedByAny("c").where(is('C'))
                        .within(Duration.ofMillis(windowMs + 1)); // Flink excludes the bound
        CEP.pattern(events.keyBy(event -> event.key), pattern)
                .inEventTime()
                .process(new Numbers())
                .addSink(new Sink(servers, arguments[2]));
        environment.execute();
    }

    private static SimpleCondition<Event> is(char kind) {
        byte wanted = (byte) (kind - 'A');
        return SimpleCondition.of(event -> event.kind == wanted);
    }

    static final class Numbers extends PatternProcessFunction<Event, String> {
        @Override
        public void processMatch(Map<String, List<Event>> match, Context context, Collector<String> out) {
            out.collect(
                    "{\"a\":" + match.get("a").get(0).number
                            + ",\"b\":" + match.get("b").get(0).number
                            + ",\"c\":" + match.get("c").get(0).number + "}");
        }
    }

    /** The partitions of a topic, dealt to the parallel instances. */
    static final class Source extends RichParallelSourceFunction<Event> {
        private final String servers;
        private final String topic;
        private volatile boolean running = true;

        Source(String servers, String topic) {
            this.servers = servers;
            this.topic = topic;
        }

        @Override
        public void run(SourceContext<Event> context) {
            Properties settings = settings(servers);
            settings.put("fetch.max.wait.ms", "5");
            settings.put("max.poll.records", "5000");
            String bytes = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
            settings.put("key.deserializer", bytes);
            settings.put("value.deserializer", bytes);
            int own = getRuntimeContext().getTaskInfo().getIndexOfThisSubtask();
            int all = getRuntimeContext().getTaskInfo().getNumberOfParallelSubtasks();
            try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
                List<TopicPartition> partitions =
                        consumer.partitionsFor(topic).stream()
                                .filter(each -> each.partition() % all == own)
                                .map(each -> new TopicPartition(topic, each.partition()))
                                .toList();
                consumer.assign(partitions);
                consumer.seekToBeginning(partitions);
                while (running) {
                    for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                        context.collect(parsed(new String(record.value(), java.nio.charset.StandardCharsets.UTF_8)));
                    }
                }
            }
        }

        @Override
        public void cancel() {
            running = false;
        }

        /** `{"n": 1, "ts": 2, "kind": "A", "id": 3}`: cheaper than a JSON parser, in Flink's favor. */
        private static Event parsed(String text) {
            int kind = text.indexOf("\"kind\"") + 6;
            while (text.charAt(kind) != '"') {
                kind++;
            }
            return new Event(
                    number(text, "\"n\""), number(text, "\"ts\""), (int) number(text, "\"id\""),
                    (byte) (text.charAt(kind + 1) - 'A'));
        }

        private static long number(String text, String name) {
            int place = text.indexOf(name) + name.length();
            while (text.charAt(place) == ':' || text.charAt(place) == ' ') {
                place++;
            }
            long value = 0;
            for (; text.charAt(place) >= '0' && text.charAt(place) <= '9'; place++) {
                value = 10 * value + text.charAt(place) - '0';
            }
            return value;
        }
    }

    static final class Sink extends RichSinkFunction<String> {
        private final String servers;
        private final String topic;
        private transient KafkaProducer<byte[], byte[]> producer;

        Sink(String servers, String topic) {
            this.servers = servers;
            this.topic = topic;
        }

        @Override
        public void open(OpenContext context) {
            Properties settings = settings(servers);
            String bytes = "org.apache.kafka.common.serialization.ByteArraySerializer";
            settings.put("key.serializer", bytes);
            settings.put("value.serializer", bytes);
            producer = new KafkaProducer<>(settings);
        }

        @Override
        public void invoke(String row, Context context) {
            producer.send(new ProducerRecord<>(topic, row.getBytes(java.nio.charset.StandardCharsets.UTF_8)));
        }

        @Override
        public void close() {
            if (producer != null) {
                producer.close();
            }
        }
    }

    private static Properties settings(String servers) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        return settings;
    }
}
